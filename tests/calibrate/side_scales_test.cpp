// SPDX-License-Identifier: Apache-2.0
#include "calibrate/full/side_scales.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "core/error.h"

namespace kvs {
namespace {

// Two heads of two tokens and two channels.
const std::vector<float> kFirst{1, -448, 2, 3, /**/ 224, 0, 1, -1}, kSecond{896, 1, 1, 1, /**/ -448, 2, 3, 4};

std::vector<double> limits_of(ScaleRule rule, std::size_t groups) {
  SideScales scales(groups);
  scales.add(kFirst, 2, 2);
  scales.add(kSecond, 2, 2);
  return scales.limits(rule);
}

TEST(SideScales, SaturateAtTheLargestMagnitude) {
  EXPECT_EQ(limits_of(ScaleRule::kMax, 1), std::vector<double>{896});
  EXPECT_EQ(limits_of(ScaleRule::kMax, 2), (std::vector<double>{896, 448}));
}

TEST(SideScales, OfAMovingAverageTakeAHundredthOfEachNewDocument) {
  // Head 0: low −448 → −448 + 0.01 (1 + 448), high 3 → 3 + 0.01 · 893; the low has the larger magnitude. Head 1: low −1
  // → −1 − 0.01 · 447, high 224 → 224 − 0.01 · 220.
  const std::vector<double> found = limits_of(ScaleRule::kEma, 2);
  EXPECT_NEAR(found[0], 448 - 4.49, 1e-9);
  EXPECT_NEAR(found[1], 224 - 2.2, 1e-9);
}

// 1 … 10,000: the 99.9 % quantile is 9,990, so that ten values are above it; 99.99 % leave one.
TEST(SideScales, OfQuantilesLeaveTheirShareOfValuesSaturated) {
  std::vector<float> values;
  values.reserve(10000);
  for (int n = 1; n <= 10000; ++n) values.push_back(static_cast<float>(n % 2 == 0 ? n : -n));
  values.push_back(1e6F);
  SideScales scales(1);
  scales.add(values, 1, 1);
  EXPECT_NEAR(scales.limits(ScaleRule::kP999).front(), 9990, 0.005 * 9990);
  EXPECT_NEAR(scales.limits(ScaleRule::kP9999).front(), 10000, 0.005 * 10000);
  EXPECT_EQ(scales.limits(ScaleRule::kMax).front(), 1e6);
  EXPECT_EQ(scales.saturated(scales.limits(ScaleRule::kMax)), 0);
  EXPECT_NEAR(scales.saturated(scales.limits(ScaleRule::kP9999)), 1e-4, 1e-6);
  // A limit of 5,000: half of the values, but for those within 1 % of it.
  EXPECT_NEAR(scales.saturated(std::vector<double>{5000}), 0.5, 0.0051);
}

TEST(SideScales, OfZerosHaveALimitOfZero) {
  SideScales scales(1);
  scales.add(std::vector<float>(4), 1, 2);
  for (const ScaleRule rule : {ScaleRule::kMax, ScaleRule::kP9999, ScaleRule::kP999, ScaleRule::kEma})
    EXPECT_EQ(scales.limits(rule).front(), 0);
  EXPECT_EQ(scales.saturated(std::vector<double>{0}), 0);
  EXPECT_EQ(scales.largest(), 0);
}

TEST(SideScales, NameTheHeadAndTheTokenOfANaN) {
  std::vector<float> states = kFirst;
  states[6] = std::numeric_limits<float>::quiet_NaN();
  SideScales scales(1);
  try {
    scales.add(states, 2, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_NE(std::string(error.what()).find("head 1, token 1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace kvs
