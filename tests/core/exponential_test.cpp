// SPDX-License-Identifier: Apache-2.0
#include "core/exponential.h"

#include <gtest/gtest.h>

namespace kvs {
namespace {

TEST(ExponentialText, IsTheNumberWhereADoubleHoldsIt) {
  EXPECT_EQ(exponential_text(0), "1");
  EXPECT_EQ(exponential_text(2.5), "12.18");
  EXPECT_EQ(exponential_text(709), "8.218e+307");
}

TEST(ExponentialText, IsThePowerBeyondADouble) {
  EXPECT_EQ(exponential_text(812.34), "e^812.3");
  EXPECT_EQ(exponential_text(-812.34), "e^-812.3");
  EXPECT_EQ(exponential_text(123456.7, 6), "e^123457");
}

TEST(ExponentialText, HasTheErrorThatOneOfTheExponentMakes) {
  EXPECT_EQ(exponential_with_error(2.5, 0.02), "12.18 ± 0.24");
  EXPECT_EQ(exponential_with_error(2.5, 0), "12.18");
  EXPECT_EQ(exponential_with_error(812.34, 2.1), "e^812.3 (± 2.1 in the exponent)");
}

}  // namespace
}  // namespace kvs
