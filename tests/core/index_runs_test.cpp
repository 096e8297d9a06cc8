// SPDX-License-Identifier: Apache-2.0
#include "core/index_runs.h"

#include <gtest/gtest.h>

#include <utility>

namespace kvs {
namespace {

std::vector<std::pair<std::size_t, std::size_t>> ends_of(const std::vector<std::size_t>& indices) {
  std::vector<std::pair<std::size_t, std::size_t>> ends;
  const std::vector<IndexRun> runs = index_runs(indices);
  ends.reserve(runs.size());
  for (const auto& [first, last] : runs) ends.emplace_back(first, last);
  return ends;
}

TEST(IndexRuns, AreTheLongest) {
  using Ends = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(ends_of({}), Ends());
  EXPECT_EQ(ends_of({7}), (Ends{{7, 7}}));
  EXPECT_EQ(ends_of({0, 1, 2, 4, 6, 7}), (Ends{{0, 2}, {4, 4}, {6, 7}}));
}

}  // namespace
}  // namespace kvs
