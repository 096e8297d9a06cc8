// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "ranks/ranks.h"

namespace kvs::inline ranks {

/// Decides which unit a rank gets next. No rank is more than kWindow × ranks units ahead of the taken results, so that
/// results do not pile up behind a slow rank.
class UnitQueue {
 public:
  static constexpr std::size_t kWindow = 4;

  UnitQueue(const Units& units, std::size_t ranks) : units_(units), next_(units.bound ? ranks : 1), ranks_(ranks) {
    for (std::size_t rank = 0; rank < next_.size(); ++rank)
      next_[rank] = units.bound ? units.first + (rank + ranks - units.first % ranks) % ranks : units.first;
  }

  /// Returns true if no unit is left for a rank.
  bool is_over(std::size_t rank) const noexcept { return next(rank) >= units_.last; }
  /// Returns the next unit; nullopt while the window is full or if no unit is left.
  std::optional<std::size_t> take(std::size_t rank, std::size_t taken) {
    const std::size_t unit = next(rank);
    if (unit >= units_.last || unit >= taken + kWindow * ranks_) return std::nullopt;
    next_[units_.bound ? rank : 0] += units_.bound ? ranks_ : 1;
    return unit;
  }

 private:
  std::size_t next(std::size_t rank) const noexcept { return next_[units_.bound ? rank : 0]; }

  Units units_;
  std::vector<std::size_t> next_;  // [rank] for bound units, otherwise one for all
  std::size_t ranks_;
};

}  // namespace kvs::inline ranks
