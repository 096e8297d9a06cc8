// SPDX-License-Identifier: Apache-2.0
#include "eval/paired_difference.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace kvs {
namespace {

TEST(PairedDifference, GrowthEndsAtTheLargestDouble) {
  EXPECT_DOUBLE_EQ(growth(0), 0);
  EXPECT_DOUBLE_EQ(growth(std::log(1.5)), 0.5);
  EXPECT_EQ(growth(812), std::numeric_limits<double>::max());
  EXPECT_EQ(growth(-812), -1);
}

TEST(PairedDifference, HasFiniteEndsWhereLossesAreFarApart) {
  const PairedDifference difference = paired_difference(std::array{1.0, 2000.0});
  ASSERT_TRUE(difference.interval);
  EXPECT_TRUE(std::isfinite(difference.interval->first));
  EXPECT_TRUE(std::isfinite(difference.interval->second));
}

}  // namespace
}  // namespace kvs
