// SPDX-License-Identifier: Apache-2.0
#include "core/index_runs.h"

namespace kvs::inline core {

std::vector<IndexRun> index_runs(std::span<const std::size_t> indices) {
  std::vector<IndexRun> runs;
  for (const std::size_t index : indices)
    if (!runs.empty() && runs.back().last + 1 == index)
      runs.back().last = index;
    else
      runs.push_back({index, index});
  return runs;
}

}  // namespace kvs::inline core
