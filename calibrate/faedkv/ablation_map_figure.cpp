#include "calibrate/faedkv/ablation_map_figure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "calibrate/faedkv/ablation_result.h"
#include "draw/axes.h"
#include "embedded/figure_ablation_map.h"

namespace kvs {

SignedLogScale::SignedLogScale(std::span<const std::vector<double>> delta) {
  std::vector<double> sizes;
  for (const std::vector<double>& row : delta) {
    for (const double value : row) {
      if (value != 0) sizes.push_back(std::abs(value));
    }
  }
  if (sizes.empty()) return;
  std::sort(sizes.begin(), sizes.end());
  linear = sizes[sizes.size() / 2];
  limit = color(sizes.back());
}

double SignedLogScale::color(double delta) const noexcept {
  return static_cast<double>(std::asinh(static_cast<long double>(delta) / linear));  // a double may not hold the ratio
}

std::string SignedLogScale::tics() const {
  const long double most = linear * std::sinh(static_cast<long double>(limit));
  const int high = static_cast<int>(std::floor(std::log10(most) + 1e-9));
  const int low = std::max(high - 3, static_cast<int>(std::ceil(std::log10(linear) - 1e-9)));
  std::string text = "\"('0' 0";
  for (int exponent = std::min(low, high); exponent <= high; ++exponent) {
    const double value = std::pow(10.0, exponent);
    text += ", '+" + short_number(value) + "' " + short_number(color(value));
    text += ", '−" + short_number(value) + "' " + short_number(color(-value));
  }
  return text + ")\"";
}

FigureImages render_ablation_map(const AblationMap& map) {
  const std::size_t chunks = map.delta.front().size();
  const double map_width = std::clamp(13.0 * static_cast<double>(chunks), 150.0, 420.0);
  const double map_height = std::clamp(11.0 * static_cast<double>(map.layers.size()), 90.0, 460.0);
  Figure figure(embedded::figure_ablation_map, 234 + 2 * map_width, 100 + map_height);
  const SignedLogScale scale(map.delta);
  FigureData delta;
  for (const std::vector<double>& row : map.delta) {
    std::vector<double> colors(row.size());
    std::ranges::transform(row, colors.begin(), [&](double value) { return scale.color(value); });
    delta.row(colors);
  }
  delta.next_block();
  for (const std::vector<double>& row : map.delta) delta.row(scaled_to_unit(row));
  std::vector<std::size_t> chunk_numbers(chunks);
  std::iota(chunk_numbers.begin(), chunk_numbers.end(), std::size_t{0});
  return figure.data("delta", delta)
      .set("layers", static_cast<double>(map.layers.size()))
      .set("chunks", static_cast<double>(chunks))
      .set_raw("layer_names", index_tics(map.layers, 8))
      .set_raw("chunk_names", index_tics(chunk_numbers, 8))
      .set("colour_limit", scale.limit)
      .set_raw("colour_tics", scale.tics())
      .set("heading", map.heading)
      .set("chunk_label", "frequency chunk (0 is the lowest)")
      .render();
}

}  // namespace kvs
