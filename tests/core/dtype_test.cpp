// SPDX-License-Identifier: Apache-2.0
#include "core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kvs {
namespace {

TEST(Bf16, RoundsToNearestEven) {
  // One bfloat16 step at 1 is 2^-7. 1 + 2^-8 is half way between 1 (even) and 1 + 2^-7 (odd).
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(1.0F + 0x1p-8F)), 1.0F);
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(1.0F + 0x1p-8F + 0x1p-20F)), 1.0F + 0x1p-7F);
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(1.0F + 3 * 0x1p-8F)), 1.0F + 0x1p-6F);
}

TEST(Bf16, KeepsNanAndInfinity) {
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(-std::numeric_limits<float>::infinity())), -std::numeric_limits<float>::infinity());
}

TEST(F16, EveryFiniteValueSurvivesARoundTrip) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(f32_to_f16(value), bits);
  }
}

TEST(F16, RoundsTiesToEvenAndOverflowsToInfinity) {
  EXPECT_EQ(f32_to_f16(2049.0F), f32_to_f16(2048.0F));  // the step at 2048 is 2; 2048 is even
  EXPECT_EQ(f32_to_f16(2051.0F), f32_to_f16(2052.0F));
  EXPECT_EQ(f16_to_f32(f32_to_f16(65519.0F)), 65504.0F);
  EXPECT_TRUE(std::isinf(f16_to_f32(f32_to_f16(65520.0F))));
  EXPECT_EQ(f16_to_f32(f32_to_f16(0x1p-25F)), 0.0F);  // half of the least subnormal ties to zero
  EXPECT_EQ(f16_to_f32(f32_to_f16(0x1.8p-25F)), 0x1p-24F);
}

}  // namespace
}  // namespace kvs
