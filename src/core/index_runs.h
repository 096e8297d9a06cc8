// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvs::inline core {

/// Consecutive indices: first, first + 1, …, last.
struct IndexRun {
  std::size_t first = 0, last = 0;
};

/// Returns the longest runs of ascending indices, in order.
std::vector<IndexRun> index_runs(std::span<const std::size_t> indices);

}  // namespace kvs::inline core
