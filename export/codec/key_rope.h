// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/backend.h"

namespace kvs::inline exporting {

/// The rotation of some layers' keys. Any number of threads may use one.
class KeyRope {
 public:
  /// Rows of cos and sin, and what keeps their memory.
  struct Rows {
    RopeTable table;
    std::shared_ptr<const void> memory;
  };

  /// @param frequencies  [chunk], radians per token;  @param factor  of cos and sin
  KeyRope(std::vector<double> frequencies, double factor) : frequencies_(std::move(frequencies)), factor_(factor) {}

  std::size_t chunks() const noexcept { return frequencies_.size(); }
  /// Returns rows of positions [first, first + count). Positions below kKept are computed once and kept: 8 · chunks
  /// bytes for each position up to the last one that was asked for, and up to as many again.
  Rows rows(DeviceMemory& memory, std::size_t first, std::size_t count) const;

 private:
  static constexpr std::size_t kKept = std::size_t{1} << 17;
  struct Table;

  std::shared_ptr<const Table> made(DeviceMemory& memory, std::size_t first, std::size_t count) const;

  std::vector<double> frequencies_;
  double factor_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Table> kept_;  // of the first positions
};

}  // namespace kvs::inline exporting
