// SPDX-License-Identifier: Apache-2.0
#include "kernels/dct_resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace kvs {
namespace {

/// One channel.
std::vector<float> resampled(const std::vector<float>& x, std::size_t count, std::size_t first_bin = 0) {
  std::vector<float> y(count);
  const double scale = std::sqrt(static_cast<double>(count) / static_cast<double>(x.size()));
  dct_resample({x, {x.size(), 1}}, first_bin, scale, {y, {count, 1}});
  return y;
}

TEST(DctResample, ARampOfEightBecomesFreqkvsPublishedFour) {
  std::vector<float> ramp(8);
  std::iota(ramp.begin(), ramp.end(), 0.0F);
  const std::vector<float> four = resampled(ramp, 4);
  const std::vector<double> expected{0.39517481, 2.57841041, 4.42158959, 6.60482519};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(four[i], expected[i], 5e-7);  // f32 of values below 8
}

TEST(DctResample, TheHighBandOfAnAlternatingSignalIsReadFromItsLastCoefficients) {
  // x = the DCT's basis vector 3 of N = 4, cos(3π(2n+1)/8)/√2. Its only coefficient, 1, is the second of the two kept,
  // so y = √(2/4) · cos(π(2n+1)/4) = ±½.
  std::vector<float> x(4);
  for (std::size_t n = 0; n < 4; ++n)
    x[n] = static_cast<float>(std::cos(3 * std::numbers::pi * (2.0 * static_cast<double>(n) + 1) / 8) / std::sqrt(2.0));
  const std::vector<float> y = resampled(x, 2, 2);
  EXPECT_NEAR(y[0], 0.5, 1e-7);
  EXPECT_NEAR(y[1], -0.5, 1e-7);
  EXPECT_NEAR(resampled(x, 2)[0], 0.0, 1e-7);
}

TEST(DctResample, RefusesCoefficientsThatThereAreNot) {
  const std::vector<float> x(4);
  EXPECT_THROW(resampled(x, 2, 3), Error);
  EXPECT_THROW(resampled(x, 5), Error);
}

}  // namespace
}  // namespace kvs
