// SPDX-License-Identifier: Apache-2.0
#include "calibrate/full/side_scales.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

constexpr double kShare = 0.01;  // weight of a new document in the average

double magnitude_of(double low, double high) { return std::max(std::abs(low), std::abs(high)); }

/// @param first  flat index of `values` in the document's states
void check_finite(std::span<const float> values, std::size_t first, std::size_t tokens, std::size_t head_dim) {
  const auto wrong = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  if (wrong == values.end()) return;
  const std::size_t row = (first + static_cast<std::size_t>(wrong - values.begin())) / head_dim;
  throw Error(ErrorCode::kData, "states",
              "found NaN or infinity in head " + std::to_string(row / tokens) + ", token " +
                  std::to_string(row % tokens) + ", expected finite values");
}

}  // namespace

void SideScales::add(std::span<const float> states, std::size_t heads, std::size_t head_dim) {
  const std::size_t each = states.size() / groups_.size();
  for (std::size_t n = 0; n < groups_.size(); ++n) {
    const auto values = states.subspan(n * each, each);
    check_finite(values, n * each, states.size() / heads / head_dim, head_dim);
    const auto [least, most] = std::ranges::minmax(values);
    const double low = least, high = most;
    Group& group = groups_[n];
    group.low = empty_ ? low : std::min(group.low, low);
    group.high = empty_ ? high : std::max(group.high, high);
    group.average_low = empty_ ? low : group.average_low + kShare * (low - group.average_low);
    group.average_high = empty_ ? high : group.average_high + kShare * (high - group.average_high);
    for (const float value : values) group.magnitudes.add(std::abs(value));
  }
  empty_ = false;
}

std::vector<double> SideScales::limits(ScaleRule rule) const {
  std::vector<double> limits;
  limits.reserve(groups_.size());
  for (const Group& group : groups_) {
    const double most = magnitude_of(group.low, group.high);
    if (rule == ScaleRule::kMax)
      limits.push_back(most);
    else if (rule == ScaleRule::kEma)
      limits.push_back(magnitude_of(group.average_low, group.average_high));
    else
      limits.push_back(std::min(most, group.magnitudes.quantile(rule == ScaleRule::kP9999 ? 0.9999 : 0.999)));
  }
  return limits;
}

double SideScales::saturated(std::span<const double> limits) const {
  std::size_t above = 0, all = 0;
  for (std::size_t n = 0; n < groups_.size(); ++n) {
    const QuantileSketch& magnitudes = groups_[n].magnitudes;
    all += magnitudes.count();
    std::ptrdiff_t bin = magnitudes.first_bin();
    for (const std::size_t count : magnitudes.counts())
      above += QuantileSketch::edge(bin++ - 1) >= limits[n] ? count : 0;
  }
  return all == 0 ? 0 : static_cast<double>(above) / static_cast<double>(all);
}

double SideScales::largest() const noexcept {
  double most = 0;
  for (const Group& group : groups_) most = std::max(most, magnitude_of(group.low, group.high));
  return most;
}

}  // namespace kvs::inline calibrate
