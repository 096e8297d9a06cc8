// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/cost/cost_model.h"
#include "calibrate/elitekv/by_layer.h"

namespace kvs {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr EliteByLayerPlan kSteps{.rank_step = 12, .max_r = 31};

/// The results of one step from (r, d_ckv).
std::vector<EliteAllocation> steps_from(const EliteLattice& lattice, EliteAllocation from) {
  const auto at = static_cast<std::size_t>(std::ranges::find(lattice.sizes, from) - lattice.sizes.begin());
  std::vector<EliteAllocation> found;
  for (const std::size_t step : lattice.candidates.at(at).steps) found.push_back(lattice.sizes[step]);
  return found;
}

TEST(EliteLattice, StepsAreOfRAtEqualSizeOrOfSizeAtEqualR) {
  // 6 values for each of r: a step of 12 values is two of r; an eighth of 192 is 24.
  const EliteLattice lattice = elite_lattice(known_geometry("smollm2-135m"), {10, 132}, kSteps);
  using Size = EliteAllocation;
  EXPECT_EQ(lattice.sizes[lattice.start], (Size{10, 132}));
  EXPECT_THAT(steps_from(lattice, {10, 132}),
              UnorderedElementsAre(Size{8, 144}, Size{12, 120}, Size{10, 108}, Size{10, 156}));
  // Two steps of r and three of size in either direction, except (6, 228) and (8, 216): d_ckv of at most 216 and 212
  // add no parameters.
  EXPECT_EQ(lattice.sizes.size(), 5U * 7U - 2);
  EXPECT_THAT(lattice.sizes, AllOf(Not(Contains(Size{6, 228})), Not(Contains(Size{8, 216})), Contains(Size{6, 204})));
  for (std::size_t n = 0; n < lattice.sizes.size(); ++n)
    EXPECT_EQ(lattice.candidates[n].size, 6 * lattice.sizes[n].r + lattice.sizes[n].d_ckv);
}

TEST(EliteLattice, EndsWhereNoCacheIs) {
  const EliteLattice lattice = elite_lattice(known_geometry("smollm2-135m"), {2, 36}, {.rank_step = 6, .max_r = 3});
  for (const EliteAllocation& size : lattice.sizes) {
    EXPECT_GE(size.r, 1U);
    EXPECT_LE(size.r, 3U);
    EXPECT_GE(size.d_ckv, 6U);
  }
  // Full rank limits the growth of (31, 198): 3 · (128 − 62) = 198 rows.
  const EliteLattice full =
      elite_lattice(known_geometry("smollm2-135m"), {31, 198}, {.rank_step = 6, .max_r = 31, .more_parameters = true});
  for (const EliteAllocation& size : full.sizes) EXPECT_LE(size.d_ckv, 3 * (128 - 2 * size.r));
  EXPECT_THAT(full.sizes, Contains(EliteAllocation{30, 204}));
}

TEST(EliteLattice, MemoryIsOfFactorsForEachRAndOfStreams) {
  EliteConfig config;
  config.layers = {0, 1};
  config.r = 2;
  config.rank = 36;
  // r is 1 to 3 and 6r + d_ckv at most 48 + 3 steps of 6: ranks up to 60, 54 and 48, of 378, 372 and 366 rows.
  const EliteByLayerPlan plan{.rank_step = 6, .max_r = 3};
  const double factors = (576 + 378) * 60 + (576 + 372) * 54 + (576 + 366) * 48 + 3 * 192 * 576,
               streams = 5 * 100 * 576;
  EXPECT_EQ(by_layer_memory(known_geometry("smollm2-135m"), config, plan, 5, 100), 2 * 4 * (factors + streams));
}

}  // namespace
}  // namespace kvs
