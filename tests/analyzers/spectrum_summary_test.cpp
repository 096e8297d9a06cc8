// SPDX-License-Identifier: Apache-2.0
#include "analyzers/spectrum_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"

namespace kvs {
namespace {

SpectrumSummary dct_summary(const std::vector<double>& power, bool with_dc) {
  return summarise_power(power, Transform::kDct, power.size(), with_dc);
}

TEST(LowBins, RoundsToTheNearestCountButNeverToNone) {
  EXPECT_EQ(low_bins(1, 1024), 10U);  // 10.24
  EXPECT_EQ(low_bins(1, 1023), 10U);
  EXPECT_EQ(low_bins(5, 1024), 51U);  // 51.2
  EXPECT_EQ(low_bins(10, 1024), 102U);
  EXPECT_EQ(low_bins(10, 15), 2U);  // 1.5
  EXPECT_EQ(low_bins(1, 20), 1U);   // 0.2
  EXPECT_EQ(low_bins(50, 1), 1U);
}

TEST(SpectrumSummary, AFlatSpectrumHoldsInItsLowestBinsWhatTheirCountSays) {
  const SpectrumSummary summary = dct_summary(std::vector<double>(100, 2.0), true);
  EXPECT_EQ(summary.bins, 100U);
  EXPECT_DOUBLE_EQ(summary.energy, 200);
  for (std::size_t i = 0; i < kLowPercents.size(); ++i) EXPECT_NEAR(summary.low_share[i], kLowPercents[i] / 100, 1e-14);
  EXPECT_EQ(summary.bins_for_energy, 95U);
  EXPECT_NEAR(summary.flatness, 1, 1e-14);
}

TEST(SpectrumSummary, WithoutDcPercentagesAndCountsAreOfTheOtherBins) {
  std::vector<double> power(101, 1.0);
  power[0] = 1e6;
  const SpectrumSummary with = dct_summary(power, true), without = dct_summary(power, false);
  EXPECT_EQ(with.bins_for_energy, 1U);
  EXPECT_NEAR(with.low_share[0], 1e6 / (1e6 + 100), 1e-14);
  EXPECT_EQ(without.bins, 100U);
  EXPECT_EQ(without.bins_for_energy, 95U);
  EXPECT_NEAR(without.low_share[0], 0.01, 1e-14);
  EXPECT_NEAR(without.flatness, 1, 1e-14);
}

TEST(SpectrumSummary, BinsForEnergyIsTheLeastCountThatHoldsTheShare) {
  // 94 + 1 of 100: the second bin is the first that reaches 95 %.
  EXPECT_EQ(dct_summary({94, 1, 0, 5}, true).bins_for_energy, 2U);
  EXPECT_EQ(dct_summary({94, 0.5, 0, 5.5}, true).bins_for_energy, 4U);
}

TEST(SpectrumSummary, FlatnessIsTheRatioOfGeometricAndArithmeticMean) {
  // √(1·4·16·…): (1·4·16·64)^(1/4) = 2^(12/4) = 8; mean 85/4.
  EXPECT_NEAR(dct_summary({1, 4, 16, 64}, true).flatness, 8 / 21.25, 1e-14);
  EXPECT_EQ(dct_summary({1, 0, 1}, true).flatness, 0);
}

TEST(SpectrumSummary, DftBinsCountForTheirMirrorImages) {
  // 6 samples: bins 0 and 3 represent one bin, bins 1 and 2 two bins each. Energy 1 + 2·2 + 2·3 + 4 = 15.
  const SpectrumSummary even = summarise_power(std::vector<double>{1, 2, 3, 4}, Transform::kDft, 6, true);
  EXPECT_DOUBLE_EQ(even.energy, 15);
  EXPECT_NEAR(even.low_share[4], 5.0 / 15, 1e-14);  // the lowest 2 of 4 bins
  // 7 samples: only DC represents one bin. 1 + 2·(2 + 3 + 4) = 19.
  EXPECT_DOUBLE_EQ(summarise_power(std::vector<double>{1, 2, 3, 4}, Transform::kDft, 7, true).energy, 19);
}

TEST(SpectrumSummary, ASpectrumWithoutEnergyIsAllZeros) {
  const SpectrumSummary summary = dct_summary(std::vector<double>(8, 0.0), true);
  EXPECT_EQ(summary.energy, 0);
  EXPECT_EQ(summary.bins_for_energy, 0U);
  EXPECT_EQ(summary.flatness, 0);
  EXPECT_THAT(summary.low_share, ::testing::Each(0.0));
}

TEST(SpectrumSummary, RoundingOfAConstantSignalIsNoEnergyWithoutDc) {
  // The rounding of a double FFT outside DC: about (1e-16)² of the whole.
  const SpectrumSummary summary = dct_summary({576, 1e-29, 3e-30, 2e-29}, false);
  EXPECT_EQ(summary.energy, 0);
  EXPECT_EQ(summary.bins_for_energy, 0U);
}

TEST(SpectrumSummary, ASingleBinHasNothingWithoutDc) {
  EXPECT_EQ(dct_summary({5}, false).bins, 0U);
  EXPECT_EQ(dct_summary({5}, false).energy, 0);
}

TEST(CumulativeEnergy, RisesFromNothingToOne) {
  EXPECT_THAT(cumulative_energy(std::vector<double>{1, 2, 1}, Transform::kDct, 3, true),
              ::testing::ElementsAre(0, 0.25, 0.75, 1));
}

TEST(SpectrumSummary, RefusesAPowerOfAnotherLength) {
  EXPECT_THROW(summarise_power(std::vector<double>(4), Transform::kDft, 9, true), Error);
}

TEST(ChunkShares, CountMirrorBinsAndAddUpToOne) {
  // 44 samples: bins 0 … 22, so that chunk c of 22 is bin c, and the last one holds bin 21 and 22. DC and bin 22 have
  // no mirror image: energy 1 + 2 · 21 + 1 = 44.
  const std::vector<double> shares = chunk_shares(std::vector<double>(23, 1.0), Transform::kDft, 44);
  ASSERT_EQ(shares.size(), kEnergyChunks);
  EXPECT_NEAR(shares[0], 1.0 / 44, 1e-15);
  EXPECT_NEAR(shares[7], 2.0 / 44, 1e-15);
  EXPECT_NEAR(shares[21], 3.0 / 44, 1e-15);
}

TEST(ChunkShares, AreBinsWhereThereAreFewer) {
  EXPECT_EQ(chunk_shares(std::vector<double>{1, 3}, Transform::kDct, 2), (std::vector<double>{0.25, 0.75}));
}

}  // namespace
}  // namespace kvs
