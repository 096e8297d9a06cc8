#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "draw/figure.h"

namespace kvs {

/// What filtering does to one channel of each state shown, after FAEDKV, figures 5 and 6.
struct FilterEffect {
  struct Panel {
    std::string title;                                // e.g. "Keys, layer 14, head 1, channel 5"
    std::vector<float> before, after;                 // [token]
    std::vector<double> energy_before, energy_after;  // [bin]
  };
  std::string heading;
  std::size_t first_token = 0;                               // number of the first entry of before and after
  std::vector<Panel> panels;                                 // all of the same number of bins
  std::vector<std::pair<std::size_t, std::size_t>> removed;  // bins [first, last) that were zeroed, drawn grey
};

FigureImages render_filter_effect(const FilterEffect& effect);

}  // namespace kvs
