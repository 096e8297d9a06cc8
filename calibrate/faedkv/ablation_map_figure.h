#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "draw/figure.h"

namespace kvs {

/// What a map of an ablation shows. Δ above 0 means that the model got worse without the chunk.
struct AblationMap {
  std::string heading;
  std::vector<std::size_t> layers;         // the model's
  std::vector<std::vector<double>> delta;  // [layer][chunk], finite
};

/// Maps of Δ (blue: better without the chunk, red: worse; the colour is a signed logarithm, because Δ spans decades)
/// and of Δ scaled to 0–1 within each layer, as in FAEDKV.
FigureImages render_ablation_map(const AblationMap& map);

/// The colour scale of Δ: colour = asinh(Δ / linear), linear up to about `linear` and logarithmic above.
struct SignedLogScale {
  double linear = 1, limit = 1;  // colour of the largest |Δ|
  /// Linear up to the median of |Δ| (zeros left out). Any values give a valid scale.
  explicit SignedLogScale(std::span<const std::vector<double>> delta);
  double color(double delta) const noexcept;
  /// A gnuplot string of tics at 0 and ± powers of ten.
  std::string tics() const;
};

}  // namespace kvs
