// SPDX-License-Identifier: Apache-2.0
#include "draw/axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "draw/numbers.h"

namespace kvs::draw {
namespace {

/// Returns the smallest number of the form {1, 2, 5} × 10^n that is at least `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

double step_of(double low, double high, std::size_t most) {
  return round_step((high - low) / static_cast<double>(most));
}

constexpr double kMaxEnd = 1e300, kMinEnd = 1e-300;
constexpr double kMinSpan = 1e-12;  // as a share of the larger end
// Lengths in decades: below kFewSteps, ticks on a logarithmic scale are evenly spaced; below kFineSteps they are finer
// than 1, 2 and 5.
constexpr double kFewSteps = 0.18, kFineSteps = 0.9;

double end_of(double value, Axis::Scale scale) {
  if (std::isnan(value)) return scale == Axis::Scale::kLinear ? 0 : 1;
  return std::clamp(value, scale == Axis::Scale::kLinear ? -kMaxEnd : kMinEnd, kMaxEnd);
}

}  // namespace

Axis::Axis(double low, double high, Scale scale) : low_(end_of(low, scale)), high_(end_of(high, scale)), scale_(scale) {
  const double size = std::max(std::abs(low_), std::abs(high_));
  if (high_ - low_ > std::max(kMinSpan * size, kMinEnd)) return;
  if (low_ > 0.1 * kMaxEnd) low_ /= 100;  // leaves space for the high end
  high_ = scale == Scale::kLinear ? low_ + std::max(1.0, std::abs(low_)) : low_ * 10;
}

Axis Axis::rounded(double low, double high, std::size_t ticks) {
  const Axis plain(low, high);
  if (!(high > low)) return plain;
  const double step = step_of(plain.low_, plain.high_, ticks);
  return {std::floor(plain.low_ / step + 1e-9) * step, std::ceil(plain.high_ / step - 1e-9) * step};
}

double Axis::place(double value) const noexcept {
  if (!(value > low_)) return 0;
  if (scale_ == Scale::kLinear) return std::min((value - low_) / (high_ - low_), 1.0);
  return std::min((std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_)), 1.0);
}

std::vector<double> Axis::linear_ticks(std::size_t most) const {
  const double step = step_of(low_, high_, most);
  std::vector<double> ticks;
  const auto last = static_cast<std::int64_t>(std::floor(high_ / step + 1e-9));
  for (auto n = static_cast<std::int64_t>(std::ceil(low_ / step - 1e-9)); n <= last; ++n)
    ticks.push_back(static_cast<double>(n) * step);
  return ticks;
}

std::vector<double> Axis::logarithmic_ticks(std::size_t most) const {
  const auto first = static_cast<int>(std::floor(std::log10(low_) + 1e-9));
  const auto last = static_cast<int>(std::floor(std::log10(high_) + 1e-9));
  const double decades = std::log10(high_) - std::log10(low_);
  if (decades < kFewSteps) return linear_ticks(most);
  if (decades < kFineSteps) return fine_ticks();
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / static_cast<double>(most))));
  std::vector<double> ticks;
  for (int exponent = first; exponent <= last; exponent += stride)
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && 3 * decades > static_cast<double>(most) + 2) continue;
      const double value = factor * std::pow(10.0, exponent);
      if (value >= low_ * (1 - 1e-9) && value <= high_ * (1 + 1e-9)) ticks.push_back(value);
    }
  return ticks;
}

std::vector<double> Axis::fine_ticks() const {
  std::vector<double> ticks;
  for (double power = std::pow(10, std::floor(std::log10(low_))); power <= high_; power *= 10)
    for (const double factor : {1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0})
      if (factor * power >= low_ * (1 - 1e-9) && factor * power <= high_ * (1 + 1e-9)) ticks.push_back(factor * power);
  return ticks;
}

std::vector<double> Axis::halving_ticks() const {
  constexpr double kMaxTicks = 32;
  const double doublings = std::log2(high_) - std::log2(low_), stride = std::max(1.0, std::ceil(doublings / kMaxTicks));
  std::vector<double> ticks;
  for (double exponent = std::ceil(std::log2(low_) - 1e-9); exponent <= std::log2(high_) + 1e-9; exponent += stride)
    ticks.push_back(std::exp2(exponent));
  return ticks;
}

std::vector<double> Axis::tick_values(std::size_t most) const {
  switch (scale_) {
    case Scale::kLinear:
      return linear_ticks(most);
    case Scale::kLogarithmic:
      return logarithmic_ticks(most);
    case Scale::kHalving:
      return halving_ticks();
  }
  return {};
}

std::vector<Axis::Tick> Axis::ticks(std::size_t most, Label label) const {
  std::vector<Tick> ticks;
  if (most == 0) return ticks;
  for (const double value : tick_values(most))
    ticks.push_back({value, label(!is_logarithmic() && std::abs(value) < 1e-12 * (high_ - low_) ? 0 : value)});
  return ticks;
}

Axis layer_axis(const std::vector<std::size_t>& layers) {
  return {static_cast<double>(layers.front()), static_cast<double>(layers.back())};
}

std::size_t layer_ticks(const std::vector<std::size_t>& layers) {
  return std::clamp<std::size_t>(layers.size() - 1, 1, 6);
}

std::string plain_label(double value) {
  const double size = std::abs(value);
  if (size == 0 || (size > 0.999e-3 && size < 1e6)) return shown_short(value, 7);
  const double power = std::floor(std::log10(size) + 1e-9);
  return shown_short(value / std::pow(10, power), 2) + "e" + shown_short(power);
}

std::string decade_label(double value) {
  if (!(value > 0)) return plain_label(value);
  const double exponent = std::log10(value), whole = std::round(exponent);
  if (std::abs(exponent - whole) > 1e-9) return plain_label(value);
  constexpr std::array kDigits{"\u2070", "\u00B9", "\u00B2", "\u00B3", "\u2074",
                               "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
  std::string label = whole < 0 ? "10\u207B" : "10";
  for (const char digit : std::to_string(std::abs(static_cast<int>(whole))))
    label += kDigits[static_cast<std::size_t>(digit - '0')];
  return label;
}

double drawn_exponential(double exponent) {
  constexpr double kMost = 338;
  return std::exp(std::clamp(exponent, -kMost, kMost));
}

std::string percent_label(double share) { return shown_percent(share); }

}  // namespace kvs::draw
