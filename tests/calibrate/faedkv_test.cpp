// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyzers/chunk_grid.h"
#include "calibrate/faedkv/ablation_result.h"

namespace kvs {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ChunkGrid, CoversEveryBinOnceForOddAndEvenLengths) {
  for (const std::size_t samples : {7U, 8U, 1000U, 1001U}) {
    for (const bool full : {false, true}) {
      const ChunkGrid grid{Transform::kDft, full, 4, samples};
      EXPECT_EQ(grid.bins(), full ? samples : samples / 2 + 1);
      EXPECT_EQ(grid.first_bin(0), 0U);
      EXPECT_EQ(grid.first_bin(4), grid.bins());
    }
  }
}

TEST(Gains, HalfSpectrumAblationZeroesExactlyTheChunk) {
  // 9 samples: B = 5 bins; C = 2: chunk 0 = [0, 2), chunk 1 = [2, 5).
  const ChunkGrid grid{Transform::kDft, false, 2, 9};
  const std::size_t both[] = {0, 1}, last[] = {1};
  EXPECT_THAT(ablation_gains(grid, both), ElementsAre(0, 0, 1, 1, 1, 1, 1, 0, 0, 0));
  EXPECT_THAT(ablation_gains(grid, last), ElementsAre(1, 1, 0, 0, 0));
}

TEST(Gains, FullSpectrumAveragesABinWithItsMirrorImage) {
  // 6 samples, C = 3: chunk 0 = {0, 1}. If it is kept alone, bin 1 loses its mirror bin 5 and keeps half its weight.
  const std::size_t kept[] = {0};
  EXPECT_THAT(gains_keeping({Transform::kDft, true, 3, 6}, kept), ElementsAre(1, 0.5, 0, 0));
}

TEST(Gains, DctChunksCoverAllSamples) {
  const std::size_t kept[] = {1};
  EXPECT_THAT(gains_keeping({Transform::kDct, false, 2, 5}, kept), ElementsAre(0, 0, 1, 1, 1));
}

TEST(AblationResult, DeltaIsTheRelativeChangeOfPerplexity) {
  // Two documents of 10 scored tokens: mean NLL 2 and 3 → PPL exp(2.5); ablated 2.1 and 3.3 → difference 0.2.
  const AblationSums sums{10, {20, 30}, {{{21}}, {{33}}}};
  const AblationResult result = ablation_result(sums);
  EXPECT_NEAR(result.nll_base, 2.5, 1e-12);
  EXPECT_NEAR(result.delta[0][0], std::exp(0.2) - 1, 1e-12);
  // Differences 0.1 and 0.3: standard error 0.1; t(0.975, 1) = tan(0.475 π) = 12.7062.
  const double reach = 12.706204736 * 0.1;
  ASSERT_TRUE(result.interval[0][0]);
  EXPECT_NEAR(result.interval[0][0]->first, std::expm1(0.2 - reach), 1e-8);
  EXPECT_NEAR(result.interval[0][0]->second, std::expm1(0.2 + reach), 1e-8);
}

TEST(AblationResult, OneDocumentHasNoInterval) {
  EXPECT_FALSE(ablation_result({5, {10}, {{{11, 12}}}}).interval[0][1]);
}

TEST(AblationResult, AChunkIsMeasuredOnItsOwnDocuments) {
  // The second document left chunk 1 out: its Δ comes from the first document alone, and a single document has no
  // interval.
  const AblationSums sums{10, {20, 30}, {{{21, 22}}, {{33, std::nullopt}}}};
  EXPECT_THAT(ablated_documents(sums), ElementsAre(ElementsAre(2, 1)));
  const AblationResult result = ablation_result(sums);
  EXPECT_NEAR(result.delta[0][0], std::exp(0.2) - 1, 1e-12);
  EXPECT_NEAR(result.delta[0][1], std::exp(0.2) - 1, 1e-12);
  EXPECT_FALSE(result.interval[0][1]);
  EXPECT_NEAR(result.nll_base, 2.5, 1e-12);
}

TEST(AblationResult, TextGivesTheSignOfAChange) {
  FaedkvResult found;
  found.ablation.chunks = 2;
  found.ablation.layers = {3};
  found.ablation.delta = {{0.02, -0.003}};
  found.kept = {{0}};
  EXPECT_THAT(to_text(found), HasSubstr("layer 3 chunk 0 (+2 %), layer 3 chunk 1 (-0.3 %)"));
}

TEST(MostImportant, TakesTheLargestAndTheLowestIndexOnTies) {
  const double delta[] = {0.1, 0.5, 0.5, -1, 0.5};
  EXPECT_THAT(most_important(delta, 2), ElementsAre(1, 2));
  EXPECT_THAT(most_important(delta, 4), ElementsAre(0, 1, 2, 4));
}

TEST(KeptCount, RoundsHalfUpAndStaysInRange) {
  EXPECT_EQ(kept_count(0.5, 22), 11U);
  EXPECT_EQ(kept_count(0.5, 5), 3U);
  EXPECT_EQ(kept_count(0.01, 22), 1U);
  EXPECT_EQ(kept_count(1, 22), 22U);
}

TEST(ScaledToUnit, MapsTheRangeAndSurvivesAFlatRow) {
  const double delta[] = {-1, 0, 3};
  EXPECT_THAT(scaled_to_unit(delta), ElementsAre(0, DoubleNear(0.25, 1e-15), 1));
  const double flat[] = {2, 2};
  EXPECT_THAT(scaled_to_unit(flat), ElementsAre(0, 0));
}

}  // namespace
}  // namespace kvs
