#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/transform/bits.h"

namespace kvs {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

double error_of(const std::vector<double>& variances, const std::vector<std::size_t>& bits) {
  double sum = 0;
  for (std::size_t n = 0; n < bits.size(); ++n) sum += variances[n] * kTrellisError[bits[n]];
  return sum;
}

/// The least error of all ways to spend `left` bits on the coefficients from `n` on.
double least_error(const std::vector<double>& variances, std::size_t n, std::size_t left) {
  if (n == variances.size()) return 0;
  double least = HUGE_VAL;
  for (std::size_t bits = 0; bits <= std::min(left, kMostBits); ++bits)
    least = std::min(least, variances[n] * kTrellisError[bits] + least_error(variances, n + 1, left - bits));
  return least;
}

TEST(AllocateBits, IsTheBestOfAllWaysToSpendThem) {
  const std::vector<double> variances{40, 9, 9, 2.5, 0.3, 0};
  for (const std::size_t bytes : {1, 2}) {
    const auto bits = allocate_bits({&variances, 1}, bytes).front();
    EXPECT_NEAR(error_of(variances, bits), least_error(variances, 0, 8 * bytes), 1e-12) << bytes << " bytes";
    EXPECT_EQ(code_bytes(bits), bytes);
  }
}

TEST(AllocateBits, LayersShareOneBudgetOfWholeBytes) {
  // 8 bits: the first layer's only coefficient is worth 100 times those of the second, which gets none until that is
  // full: kTrellisError falls by a factor of 3.6 to 2.9 with each bit, 100 < 3⁵.
  const std::vector<std::vector<double>> variances{{100}, {1, 1}};
  const auto one = allocate_bits(variances, 1), two = allocate_bits(variances, 2);
  EXPECT_THAT(one, ElementsAre(ElementsAre(8), ElementsAre(0, 0)));
  EXPECT_THAT(two, ElementsAre(ElementsAre(8), ElementsAre(4, 4)));
}

TEST(AllocateBits, FillsTheCoefficientsAndNotMore) {
  const std::vector<double> variances{1, 2};
  EXPECT_THAT(allocate_bits({&variances, 1}, 100).front(), Each(kMostBits));
}

TEST(AllocateBits, ErrorsAreConvexInBits) {
  for (std::size_t bits = 1; bits < kMostBits; ++bits)
    EXPECT_GT(kTrellisError[bits - 1] - kTrellisError[bits], kTrellisError[bits] - kTrellisError[bits + 1]);
}

}  // namespace
}  // namespace kvs
