#include "kernels/cpu/fast_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace kvs::cpu {
namespace {

float exp_of(float x) { return exp(splat(x))[5]; }

/// Distance between neighbours of the float nearest to `value`, subnormals included.
double unit_in_last_place(double value) {
  const int exponent = std::max(std::ilogb(std::max(value, 0x1p-149)), -126);
  return std::ldexp(1.0, exponent - 23);
}

TEST(Exp, IsWithinTwoUnitsInTheLastPlaceOfDoublePrecision) {
  // Every 997th float between −104 (where e^x rounds to 0) and 88.72 (where it leaves the range), of both signs.
  double worst = 0;
  for (const float limit : {-104.0F, 88.72F}) {
    const auto last = std::bit_cast<std::uint32_t>(limit), sign = last & 0x80000000U;
    for (std::uint32_t bits = sign; bits < last; bits += 997) {
      const auto x = std::bit_cast<float>(bits);
      const double exact = std::exp(static_cast<double>(x));
      worst = std::max(worst, std::abs(static_cast<double>(exp_of(x)) - exact) / unit_in_last_place(exact));
    }
  }
  EXPECT_LE(worst, 2.0);
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

}  // namespace
}  // namespace kvs::cpu
