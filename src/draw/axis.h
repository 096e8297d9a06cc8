// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kvs::draw {

/// A quantity along one side of a panel.
class Axis {
 public:
  enum class Scale { kLinear, kLogarithmic, kHalving };  ///< halving: logarithmic, with ticks at powers of two
  struct Tick {
    double value;
    std::string label;
    bool operator==(const Tick&) const = default;
  };
  using Label = std::string (*)(double value);

  /// Clamps both ends to at most 1e300 in magnitude and, on a logarithmic scale, to at least 1e-300. Widens an axis of
  /// length 0. An end that is NaN becomes 0 or, on a logarithmic scale, 1.
  Axis(double low, double high, Scale scale = Scale::kLinear);
  /// Returns the axis from `low` to `high`, widened to round numbers at both ends.
  static Axis rounded(double low, double high, std::size_t ticks);

  double low() const noexcept { return low_; }
  double high() const noexcept { return high_; }
  bool is_logarithmic() const noexcept { return scale_ != Scale::kLinear; }
  bool operator==(const Axis&) const = default;
  /// Returns the position of `value` from 0 (low end) to 1 (high end). Values beyond the ends are clamped.
  double place(double value) const noexcept;
  /// Returns about `most` ticks at round numbers within the axis (0: none): 1, 2 or 5 times a power of ten. A long
  /// logarithmic scale has ticks at powers of ten; one shorter than a decade has finer steps.
  std::vector<Tick> ticks(std::size_t most, Label label) const;

 private:
  std::vector<double> tick_values(std::size_t most) const;
  std::vector<double> linear_ticks(std::size_t most) const;
  std::vector<double> logarithmic_ticks(std::size_t most) const;
  std::vector<double> fine_ticks() const;
  std::vector<double> halving_ticks() const;

  double low_, high_;
  Scale scale_;
};

/// Axis from the first to the last layer, with ticks at whole layers.
Axis layer_axis(const std::vector<std::size_t>& layers);
std::size_t layer_ticks(const std::vector<std::size_t>& layers);

/// Formats a number as "0.5", "100", "1e6" or "1e−4".
std::string plain_label(double value);
/// Formats a power of ten as "10⁻³", other numbers as plain_label() does.
std::string decade_label(double value);
/// Returns e^exponent, clamped to 1e-147 … 1e147 (the end of the page), so that the ratio of two results is finite.
double drawn_exponential(double exponent);

/// Formats a share as "25 %".
std::string percent_label(double share);

}  // namespace kvs::draw
