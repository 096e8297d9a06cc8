#include "calibrate/full/fp8_scales.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "core/error.h"

namespace kvs {
namespace {

// Two heads of two tokens and two channels.
const std::vector<float> kFirst{1, -448, 2, 3, /**/ 224, 0, 1, -1}, kSecond{896, 1, 1, 1, /**/ -448, 2, 3, 4};

std::vector<double> scales_of(ExtremeRule rule, std::size_t groups) {
  Fp8Scales scales(rule, groups);
  scales.add(kFirst, 2, 2);
  scales.add(kSecond, 2, 2);
  return scales.scales();
}

TEST(Fp8Scales, AreTheLargestMagnitudeOver448) {
  EXPECT_EQ(scales_of(ExtremeRule::kMax, 1), std::vector<double>{2.0});
  EXPECT_EQ(scales_of(ExtremeRule::kMax, 2), (std::vector<double>{2.0, 1.0}));
}

TEST(Fp8Scales, OfAMovingAverageTakeAHundredthOfEachNewDocument) {
  // Head 0: low −448 → −448 + 0.01 (1 + 448), high 3 → 3 + 0.01 · 893; the low has the larger magnitude. Head 1: low −1
  // → −1 − 0.01 · 447, high 224 → 224 − 0.01 · 220.
  const std::vector<double> found = scales_of(ExtremeRule::kEma, 2);
  EXPECT_NEAR(found[0], (448 - 4.49) / 448, 1e-12);
  EXPECT_NEAR(found[1], (224 - 2.2) / 448, 1e-12);
}

TEST(Fp8Scales, OfZerosArePositive) {
  Fp8Scales scales(ExtremeRule::kMax, 1);
  scales.add(std::vector<float>(4), 1, 2);
  EXPECT_GT(scales.scales().front(), 0);
  EXPECT_EQ(scales.largest(), 0);
}

TEST(Fp8Scales, NameTheHeadAndTheTokenOfANaN) {
  std::vector<float> states = kFirst;
  states[6] = std::numeric_limits<float>::quiet_NaN();
  Fp8Scales scales(ExtremeRule::kMax, 1);
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
