#pragma once

#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs {

/// Similarity of a text's states and of its copy's with synonyms, of one kind of state and one group of documents.
struct SimilarityPanel {
  struct Curve {
    std::string name;                      // the part of the spectrum
    std::vector<double> mean;              // [layer]
    std::vector<draw::Interval> interval;  // [layer] 95 %
  };
  std::string key, title;
  std::size_t group = 0;  // one row of the figure for each, on a scale of its own
  std::vector<Curve> curves;
};

/// Similarity by layer with its intervals, after FreqKV's figure 2: a column for each kind of state.
draw::Chart similarity_chart(const std::string& heading, const std::vector<std::size_t>& layers,
                             const std::vector<SimilarityPanel>& panels, std::size_t columns);

}  // namespace kvs
