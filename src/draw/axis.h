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

  /// Ends where values end, at most 1e300 from 0 and on a logarithmic scale at least 1e-300. An axis without length
  /// gets one, an end that is no number is 0 or, on a logarithmic scale, 1.
  Axis(double low, double high, Scale scale = Scale::kLinear);
  /// As `low` to `high`, but from round number to round number.
  static Axis rounded(double low, double high, std::size_t ticks);

  double low() const noexcept { return low_; }
  double high() const noexcept { return high_; }
  bool is_logarithmic() const noexcept { return scale_ != Scale::kLinear; }
  bool operator==(const Axis&) const = default;
  /// 0 at the low end, 1 at the high one; values beyond are put at the ends.
  double place(double value) const noexcept;
  /// Round numbers inside, about `most` of them (0: none): 1, 2 or 5 times a power of ten. On a logarithmic scale
  /// powers of ten where it is long, and where it is shorter than a decade finer steps.
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

/// From the first layer to the last, and ticks that are whole layers.
Axis layer_axis(const std::vector<std::size_t>& layers);
std::size_t layer_ticks(const std::vector<std::size_t>& layers);

/// "0.5", "100", "1e6", "1e−4".
std::string plain_label(double value);
/// A power of ten as "10⁻³", other numbers as plain_label.
std::string decade_label(double value);
/// e^exponent at the height where it is drawn: beyond 1e147 and below 1e-147 at the end of the page, so that the ratio
/// of two is a number, too.
double drawn_exponential(double exponent);

/// A share: "25 %".
std::string percent_label(double share);

}  // namespace kvs::draw
