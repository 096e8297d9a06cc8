// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/fast_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "core/dtype.h"

namespace kvs::cpu {
namespace {

float exp_of(float x) { return exp(splat(x))[5]; }
float exp2_of(float x) { return exp2(splat(x))[5]; }

/// Distance between neighbours of the float nearest to `value`, subnormals included.
double unit_in_last_place(double value) {
  const int exponent = std::max(std::ilogb(std::max(std::abs(value), 0x1p-149)), -126);
  return std::ldexp(1.0, exponent - 23);
}

/// Returns the worst error, in units in the last place, at every 997th float from 0 to each of the limits.
template <class Approximate, class Exact>
double worst_error(std::initializer_list<float> limits, Approximate approximate, Exact exact) {
  double worst = 0;
  for (const float limit : limits) {
    const auto last = std::bit_cast<std::uint32_t>(limit), sign = last & 0x80000000U;
    for (std::uint32_t bits = sign; bits < last; bits += 997) {
      const auto x = std::bit_cast<float>(bits);
      const double expected = exact(static_cast<double>(x));
      worst = std::max(worst, std::abs(static_cast<double>(approximate(x)) - expected) / unit_in_last_place(expected));
    }
  }
  return worst;
}

// The limits are the points at which the power rounds to 0 and leaves the range.
TEST(Exp, IsWithinTwoUnitsInTheLastPlaceOfDoublePrecision) {
  EXPECT_LE(worst_error({-104.0F, 88.72F}, exp_of, [](double x) { return std::exp(x); }), 2.0);
}

TEST(Exp2, IsWithinTwoUnitsInTheLastPlaceOfDoublePrecision) {
  EXPECT_LE(worst_error({-150.5F, 127.99F}, exp2_of, [](double x) { return std::exp2(x); }), 2.0);
}

TEST(Tanh, IsWithinThreeUnitsInTheLastPlaceOfDoublePrecision) {
  const auto tanh_of = [](float x) { return tanh(splat(x))[5]; };
  EXPECT_LE(worst_error({20.0F, -20.0F}, tanh_of, [](double x) { return std::tanh(x); }), 3.0);
}

TEST(Tanh, KeepsSpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(tanh(splat(kInfinity))[0], 1.0F);
  EXPECT_EQ(tanh(splat(-kInfinity))[0], -1.0F);
  EXPECT_TRUE(std::isnan(tanh(splat(std::numeric_limits<float>::quiet_NaN()))[0]));
}

TEST(Erfc, KeepsAbsoluteAndRelativeAccuracy) {
  for (float x = -6.0F; x < 9.0F; x += 0.0007F) {
    const double expected = std::erfc(static_cast<double>(x)),
                 error = std::abs(static_cast<double>(erfc(splat(x))[3]) - expected);
    ASSERT_LE(error, std::min(0x1p-21, 0x1p-15 * expected)) << x;
  }
  EXPECT_TRUE(std::isnan(erfc(splat(std::numeric_limits<float>::quiet_NaN()))[0]));
}

TEST(Exp2, KeepsSpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int n = -149; n < 128; ++n) EXPECT_EQ(exp2_of(static_cast<float>(n)), std::ldexp(1.0F, n));
  EXPECT_EQ(exp2_of(-kInfinity), 0.0F);
  EXPECT_EQ(exp2_of(-1e30F), 0.0F);
  EXPECT_EQ(exp2_of(128.0F), kInfinity);
  EXPECT_EQ(exp2_of(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exp2_of(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Exp, KeepsSpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp_of(0.0F), 1.0F);
  EXPECT_EQ(exp_of(-0.0F), 1.0F);
  EXPECT_EQ(exp_of(-kInfinity), 0.0F);
  EXPECT_EQ(exp_of(-1e30F), 0.0F);
  EXPECT_EQ(exp_of(kInfinity), kInfinity);
  EXPECT_EQ(exp_of(88.73F), kInfinity);  // ln(FLT_MAX) is 88.7228
  EXPECT_TRUE(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Lanes, RoundToBf16AsTheScalarDoes) {
  // All upper halves with lower halves around the tie, NaN and infinities among them.
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const auto value = std::bit_cast<float>((upper << 16) | lower);
      ASSERT_EQ(to_bf16(Lanes{value})[0], f32_to_bf16(value)) << upper << ' ' << lower;
    }
  }
}

TEST(Lanes, RoundToBf16FastAsTheScalarDoesButForSubnormals) {
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    if ((upper & 0x7f80U) == 0) continue;
    for (const std::uint32_t lower : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const auto value = std::bit_cast<float>((upper << 16) | lower);
      std::uint16_t narrow[kLanes];
      store_fast(narrow, Lanes{value});
      ASSERT_EQ(narrow[0], f32_to_bf16(value)) << upper << ' ' << lower;
    }
  }
}

TEST(Lanes, ReduceAllLanes) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    Lanes values = splat(-2.0F);
    values[lane] = -1.0F;
    EXPECT_EQ(largest(values), -1.0F);
    EXPECT_EQ(sum_of(values), -1.0 - 2.0 * (kLanes - 1));
  }
}

}  // namespace
}  // namespace kvs::cpu
