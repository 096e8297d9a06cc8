#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "draw/figure.h"

namespace kvs {

/// Perplexity of calibrated models that differ in the number of chunks.
struct PerplexityChunks {
  struct Series {
    std::string title;
    std::vector<std::pair<std::size_t, double>> points;  // (C ≥ 1, perplexity), ascending in C
  };
  std::string heading;
  std::vector<Series> series;
  std::optional<double> base;  // of the unchanged model
};

FigureImages render_perplexity_chunks(const PerplexityChunks& sweep);

}  // namespace kvs
