// SPDX-License-Identifier: Apache-2.0
#include "core/quantile_sketch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvs::inline core {
namespace {

/// Ratio of the two edges of a bin. Its representative is the harmonic mean of the edges.
constexpr double kGrowth = (1 + QuantileSketch::kRelativeError) / (1 - QuantileSketch::kRelativeError);

std::ptrdiff_t bin_of(double value) {
  return static_cast<std::ptrdiff_t>(std::ceil(std::log(value) / std::log(kGrowth)));
}

}  // namespace

double QuantileSketch::edge(std::ptrdiff_t bin) { return std::pow(kGrowth, static_cast<double>(bin)); }
std::ptrdiff_t QuantileSketch::least_bin() { return bin_of(kLeast); }
std::ptrdiff_t QuantileSketch::greatest_bin() { return bin_of(kGreatest); }

void QuantileSketch::add(double value) {
  if (value >= kLeast)
    add_to_bin(bin_of(std::min(value, kGreatest)), 1);
  else
    ++zeros_;
}

void QuantileSketch::add_to_bin(std::ptrdiff_t bin, std::size_t count) {
  if (counts_.empty()) first_ = bin;
  if (bin < first_) {
    counts_.insert(counts_.begin(), static_cast<std::size_t>(first_ - bin), 0);
    first_ = bin;
  }
  const auto n = static_cast<std::size_t>(bin - first_);
  if (n >= counts_.size()) counts_.resize(n + 1);
  counts_[n] += count;
}

QuantileSketch& QuantileSketch::operator+=(const QuantileSketch& other) {
  zeros_ += other.zeros_;
  for (std::size_t n = 0; n < other.counts_.size(); ++n)
    if (other.counts_[n] > 0) add_to_bin(other.first_ + static_cast<std::ptrdiff_t>(n), other.counts_[n]);
  return *this;
}

std::size_t QuantileSketch::count() const noexcept { return std::accumulate(counts_.begin(), counts_.end(), zeros_); }

double QuantileSketch::quantile(double share) const {
  const double rank = std::ceil(share * static_cast<double>(count()));
  std::size_t below = zeros_;
  if (static_cast<double>(below) >= rank) return 0;
  std::size_t n = 0;
  while (n + 1 < counts_.size() && static_cast<double>(below + counts_[n]) < rank) below += counts_[n++];
  return edge(first_ + static_cast<std::ptrdiff_t>(n)) * 2 / (1 + kGrowth);
}

}  // namespace kvs::inline core
