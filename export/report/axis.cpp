#include "export/report/axis.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "export/report/numbers.h"

namespace kvs {
namespace {

/// The least of 1, 2, 5 times a power of ten that is not below `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

double step_of(double low, double high, std::size_t most) {
  return round_step((high - low) / static_cast<double>(most));
}

}  // namespace

Axis::Axis(double low, double high, Scale scale) : low_(low), high_(high), scale_(scale) {
  if (!std::isfinite(low) || !std::isfinite(high) || (scale != Scale::kLinear && std::min(low, high) <= 0))
    throw Error(ErrorCode::kInternal, "axis", "its ends have no place on it");
  if (high_ > low_) return;
  high_ = scale == Scale::kLinear ? low_ + 1 : low_ * 10;
}

Axis Axis::rounded(double low, double high, std::size_t ticks) {
  if (!(high > low)) return {low, high};
  const double step = step_of(low, high, ticks);
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step};
}

double Axis::place(double value) const noexcept {
  if (scale_ == Scale::kLinear) return std::clamp((value - low_) / (high_ - low_), 0.0, 1.0);
  if (value <= 0) return 0;
  return std::clamp(std::log(value / low_) / std::log(high_ / low_), 0.0, 1.0);
}

std::vector<double> Axis::linear_ticks(std::size_t most) const {
  const double step = step_of(low_, high_, most);
  std::vector<double> ticks;
  const auto last = static_cast<int>(std::floor(high_ / step + 1e-9));
  for (auto n = static_cast<int>(std::ceil(low_ / step - 1e-9)); n <= last; ++n) ticks.push_back(n * step);
  return ticks;
}

std::vector<double> Axis::logarithmic_ticks(std::size_t most) const {
  const auto first = static_cast<int>(std::floor(std::log10(low_) + 1e-9));
  const auto last = static_cast<int>(std::floor(std::log10(high_) + 1e-9));
  const double decades = std::log10(high_ / low_);
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

std::vector<double> Axis::halving_ticks() const {
  std::vector<double> ticks;
  for (double value = std::exp2(std::ceil(std::log2(low_) - 1e-9)); value <= high_; value *= 2) ticks.push_back(value);
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
    ticks.push_back({value, label(std::abs(value) < 1e-12 * (high_ - low_) ? 0 : value)});
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

std::string percent_label(double share) { return shown_percent(share); }

}  // namespace kvs
