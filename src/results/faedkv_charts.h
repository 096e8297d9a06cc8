// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "draw/chart.h"
#include "results/ablation.h"

namespace kvs::inline results {

/// Draws two maps: Δ with a signed logarithmic colour scale, because Δ spans decades, and Δ scaled to [0, 1] within
/// each layer, as in FAEDKV.
draw::Chart ablation_chart(const std::string& heading, const AblationResult& ablation);

/// The colour scale of Δ: colour = asinh(Δ / linear). The scale is linear up to about `linear` and logarithmic above.
struct SignedLogScale {
  double linear = 1, limit = 1;  // colour of the largest |Δ|
  /// Sets `linear` to the median of |Δ| without zeros. Any values give a valid scale.
  explicit SignedLogScale(std::span<const std::vector<double>> delta);
  double color(double delta) const noexcept;
  /// Returns ticks at 0 and ± powers of ten; their positions are between −1 and 1.
  std::vector<draw::Axis::Tick> ticks() const;
};

/// One channel of each state before and after filtering (FAEDKV, figures 5 and 6).
struct FilterEffect {
  struct Panel {
    std::string title;                                // e.g. "Keys, layer 14, head 1, channel 5"
    std::vector<float> before, after;                 // [token]
    std::vector<double> energy_before, energy_after;  // [bin]
  };
  std::string heading;
  std::size_t first_token = 0;                               // token index of the first entry of before and after
  std::vector<Panel> panels;                                 // all panels have the same number of bins
  std::vector<std::pair<std::size_t, std::size_t>> removed;  // zeroed bins [first, last), drawn in grey
};

/// Draws the channel along the tokens in the top row and its energy spectrum in the bottom row, with one column for
/// each state.
draw::Chart filter_chart(const FilterEffect& effect);

/// Draws perplexity against the number of kept chunks, and the perplexity of the unchanged model.
draw::Chart chunk_sweep_chart(const std::string& heading, const FaedkvQuality& quality);

}  // namespace kvs::inline results
