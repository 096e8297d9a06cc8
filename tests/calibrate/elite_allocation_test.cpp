// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/elite_allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace kvs {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr EliteShape kLlama7b{.d_model = 4096, .kv_heads = 32, .head_dim = 128, .chunks = 64};
constexpr EliteShape kSmolLm2{.d_model = 576, .kv_heads = 3, .head_dim = 64, .chunks = 32};

using Pair = EliteAllocation;

TEST(EliteAllocations, OfLlama2AtAnEighthAreTheKnownSeven) {
  EXPECT_THAT(
      elite_allocations(kLlama7b, 0.125, false),
      ElementsAre(Pair{2, 896}, Pair{4, 768}, Pair{6, 640}, Pair{8, 512}, Pair{10, 384}, Pair{12, 256}, Pair{14, 128}));
}

TEST(EliteAllocations, OfLlama2AreAsManyAsItsPairsInsideTheBound) {
  const auto count = [](double ratio) { return elite_allocations(kLlama7b, ratio, false).size(); };
  EXPECT_EQ(count(0.5), 19U);
  EXPECT_EQ(count(0.34375), 21U);
  EXPECT_EQ(count(0.28125), 17U);
  EXPECT_EQ(count(0.25), 15U);
  EXPECT_EQ(count(0.21875), 13U);
}

TEST(EliteAllocations, HoldExactlyTheWantedCache) {
  const auto pairs = elite_allocations(kSmolLm2, 0.75, false);  // 288 of 384 values
  EXPECT_THAT(pairs, Contains(Pair{16, 192}));
  for (const Pair& pair : pairs) EXPECT_EQ(pair.values(kSmolLm2), 288U);
  EXPECT_THAT(elite_allocations(kSmolLm2, 0.5, false), Contains(Pair{12, 120}));
}

TEST(EliteAllocations, MoreParametersLiftTheBoundUpToFullRank) {
  // (4, 264): bound ⌊576 · 360/936⌋ = 221, but 360 rows have rank 264.
  EXPECT_THAT(elite_allocations(kSmolLm2, 0.75, false), ::testing::Not(Contains(Pair{4, 264})));
  EXPECT_THAT(elite_allocations(kSmolLm2, 0.75, true), Contains(Pair{4, 264}));
  // r = 28 leaves 216 rows, and the full cache 384 − 168 = 216 values for them.
  EXPECT_THAT(elite_allocations(kSmolLm2, 1.0, true), Contains(Pair{28, 216}));
}

TEST(EliteAllocations, ThereAreNoneOfASizeThatIsNotWhole) {
  EXPECT_THAT(elite_allocations(kSmolLm2, 0.3, false), IsEmpty());  // 115.2 values
}

TEST(EliteAllocations, RefuseARatioOutOfRange) {
  EXPECT_THROW(elite_allocations(kSmolLm2, 0.0, false), Error);
  EXPECT_THROW(elite_allocations(kSmolLm2, 1.5, false), Error);
  EXPECT_THROW(elite_allocations(kSmolLm2, std::nan(""), false), Error);
}

}  // namespace
}  // namespace kvs
