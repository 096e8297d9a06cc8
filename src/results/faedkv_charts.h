#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "results/ablation.h"

namespace kvs {

/// Maps of Δ, whose colour is a signed logarithm, because Δ spans decades, and of Δ scaled within each layer, as in
/// FAEDKV.
draw::Chart ablation_chart(const std::string& heading, const AblationResult& ablation);

/// The colour scale of Δ: colour = asinh(Δ / linear), linear up to about `linear` and logarithmic above.
struct SignedLogScale {
  double linear = 1, limit = 1;  // colour of the largest |Δ|
  /// Linear up to the median of |Δ| (zeros left out). Any values give a valid scale.
  explicit SignedLogScale(std::span<const std::vector<double>> delta);
  double color(double delta) const noexcept;
  /// At 0 and ± powers of ten; their values are between −1 and 1.
  std::vector<draw::Axis::Tick> ticks() const;
};

/// One channel of each state before and after filtering, after FAEDKV, figures 5 and 6.
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

/// The channel along the tokens on top, its energy spectrum below; one column for each state.
draw::Chart filter_chart(const FilterEffect& effect);

/// Perplexity with the kept chunks of a sweep against their number, and that of the unchanged model.
draw::Chart chunk_sweep_chart(const std::string& heading, const FaedkvQuality& quality);

}  // namespace kvs
