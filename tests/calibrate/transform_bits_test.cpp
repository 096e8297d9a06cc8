// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/transform/bits.h"

namespace kvs {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<std::size_t> bits_of(const std::vector<double>& variances, std::size_t bytes) {
  const CodeRows rows{{variances}};
  return allocate_bits({&rows, 1}, bytes).front().front();
}

double error_of(const std::vector<double>& variances, const std::vector<std::size_t>& bits) {
  double sum = 0;
  for (std::size_t n = 0; n < bits.size(); ++n) sum += variances[n] * kTrellisError[bits[n]];
  return sum;
}

/// The least error of all ways to spend `left` bits on the coefficients from `n` on.
double min_error(const std::vector<double>& variances, std::size_t n, std::size_t left) {
  if (n == variances.size()) return 0;
  double least = HUGE_VAL;
  for (std::size_t bits = 0; bits <= std::min(left, kMaxBits); ++bits)
    least = std::min(least, variances[n] * kTrellisError[bits] + min_error(variances, n + 1, left - bits));
  return least;
}

TEST(AllocateBits, IsTheBestOfAllWaysToSpendThem) {
  const std::vector<double> variances{40, 9, 9, 2.5, 0.3, 0};
  for (const std::size_t bytes : {1, 2}) {
    const auto bits = bits_of(variances, bytes);
    EXPECT_NEAR(error_of(variances, bits), min_error(variances, 0, 8 * bytes), 1e-12) << bytes << " bytes";
    EXPECT_EQ(code_bytes(bits), bytes);
  }
}

TEST(AllocateBits, LayersShareOneBudgetOfWholeBytes) {
  // A byte is worth 100 (1 − D(8)) in the first layer and 2 (1 − D(4)) in the second, where it is shared equally.
  const std::vector<CodeRows> layers{{{{100}}}, {{{1, 1}}}};
  EXPECT_THAT(allocate_bits(layers, 1), ElementsAre(ElementsAre(ElementsAre(8)), ElementsAre(ElementsAre(0, 0))));
  EXPECT_THAT(allocate_bits(layers, 2), ElementsAre(ElementsAre(ElementsAre(8)), ElementsAre(ElementsAre(4, 4))));
}

TEST(AllocateBits, RowsThatBelongTogetherGetTheSameBytes) {
  const std::vector<CodeRows> layers{{{{9, 1}, {1, 1}}}, {{{2, 2}}}};
  // A byte of each of the first two is worth (10 + 2) (1 − D(4)) / 2 or a little more, a byte of the third 4 (1 −
  // D(4)).
  EXPECT_THAT(allocate_bits(layers, 2),
              ElementsAre(ElementsAre(ElementsAre(5, 3), ElementsAre(4, 4)), ElementsAre(ElementsAre(0, 0))));
  EXPECT_THAT(allocate_bits(layers, 1),
              ElementsAre(ElementsAre(ElementsAre(0, 0), ElementsAre(0, 0)), ElementsAre(ElementsAre(4, 4))));
}

TEST(AllocateBits, FillsTheCoefficientsAndNotMore) { EXPECT_THAT(bits_of({1, 2}, 100), Each(kMaxBits)); }

TEST(AllocateBits, ALayerThatHoldsFewerTokensPaysLess) {
  // A first byte of the first layer is worth 2 (1 − D(4)) / 8, a second of the other one 2 (D(4) − D(8)).
  const std::vector<CodeRows> layers{{{{1, 1}}, 8}, {{{1, 1}}, 1}};
  EXPECT_THAT(allocate_bits(layers, 7), ElementsAre(ElementsAre(ElementsAre(0, 0)), ElementsAre(ElementsAre(8, 8))));
  EXPECT_THAT(allocate_bits(layers, 9), ElementsAre(ElementsAre(ElementsAre(4, 4)), ElementsAre(ElementsAre(4, 4))));
}

TEST(AllocateBits, ErrorsAreConvexInBits) {
  for (std::size_t bits = 1; bits < kMaxBits; ++bits)
    EXPECT_GT(kTrellisError[bits - 1] - kTrellisError[bits], kTrellisError[bits] - kTrellisError[bits + 1]);
}

}  // namespace
}  // namespace kvs
