// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvs::inline core {

/// The distribution of non-negative values in memory that does not grow with their number. The memory holds counts in
/// bins whose width is proportional to the value (DDSketch, Masson, Rim and Lee 2019, algorithms 1 and 2). The sum of
/// two sketches equals the sketch of all values, in any order.
class QuantileSketch {
 public:
  /// quantile() differs from a value of that rank by at most this share of the value.
  static constexpr double kRelativeError = 0.005;
  /// Smaller values count as 0, larger values than kGreatest as kGreatest.
  static constexpr double kLeast = 1e-9, kGreatest = 1e9;

  /// @param value  a value below kLeast or NaN counts as 0
  void add(double value);
  QuantileSketch& operator+=(const QuantileSketch& other);

  std::size_t count() const noexcept;
  /// Returns the ⌈share · count⌉-th smallest value. @param share  in (0, 1];  count() must be above 0.  Cost O(bins)
  double quantile(double share) const;

  /// Bin n holds the values in (edge(n − 1), edge(n)].
  static double edge(std::ptrdiff_t bin);
  /// Returns the first and the last bin of all values.
  static std::ptrdiff_t least_bin();
  static std::ptrdiff_t greatest_bin();
  std::size_t zeros() const noexcept { return zeros_; }
  std::ptrdiff_t first_bin() const noexcept { return first_; }
  std::span<const std::size_t> counts() const noexcept { return counts_; }  // [bin − first_bin()]
  /// Adds `count` values of a bin, which must be between least_bin() and greatest_bin().
  void add_to_bin(std::ptrdiff_t bin, std::size_t count);
  void add_zeros(std::size_t count) noexcept { zeros_ += count; }

 private:
  std::size_t zeros_ = 0;
  std::ptrdiff_t first_ = 0;
  std::vector<std::size_t> counts_;
};

}  // namespace kvs::inline core
