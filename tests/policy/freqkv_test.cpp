#include "policy/freqkv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "core/error.h"
#include "tests/calibrate/elite_golden.h"

namespace kvs {
namespace {

using View = TensorView<const float, 3>;

TEST(FreqkvCompress, AgreesWithScipyOnRealStates) {
  const std::vector<float> k = golden::keys();
  constexpr std::size_t kSinks = 4, kBody = golden::kTokens - kSinks;
  const View body(std::span<const float>(k).subspan(kSinks * golden::kHeadDim), {1, kBody, golden::kHeadDim});
  const std::vector<float> compressed = freqkv_compress(body, kBody / 2, {});
  ASSERT_EQ(compressed.size(), kBody / 2 * golden::kHeadDim);
  const Json expected = golden::expected()["freqkv_k_every_17th"];
  for (std::size_t row = 0; row < expected.size(); ++row)
    for (std::size_t channel = 0; channel < golden::kHeadDim; ++channel)  // both rounded to f32; states up to 13
      EXPECT_NEAR(compressed[17 * row * golden::kHeadDim + channel], expected[row][channel].get<double>(), 1e-6);
}

TEST(FreqkvCompress, ARampOfEightBecomesThePublishedFour) {
  std::vector<float> ramp(8);
  std::iota(ramp.begin(), ramp.end(), 0.0F);
  const std::vector<float> four = freqkv_compress(View(ramp, {1, 8, 1}), 4, {});
  const std::vector<double> expected{0.39517481, 2.57841041, 4.42158959, 6.60482519};
  ASSERT_EQ(four.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(four[i], expected[i], 5e-7);  // f32 of values below 8
}

TEST(FreqkvCompress, RescalingKeepsAConstantChannelAndItsAbsenceDoesNot) {
  const std::vector<float> constant(2 * 10 * 3, 5.0F);  // two heads, three channels
  for (const float value : freqkv_compress(View(constant, {2, 10, 3}), 3, {})) EXPECT_NEAR(value, 5.0F, 2e-6);
  // Without it the constant grows by √(N/L) = √(10/3).
  const auto grown = freqkv_compress(View(constant, {2, 10, 3}), 3, {.rescale = false});
  EXPECT_EQ(grown.size(), 2U * 3 * 3);
  EXPECT_NEAR(grown.back(), 5.0 * std::sqrt(10.0 / 3.0), 4e-6);
}

TEST(FreqkvCompress, TheHighBandOfAnAlternatingSignalIsReadFromItsLastCoefficients) {
  // x = the DCT's basis vector 3 of N = 4, cos(3π(2n+1)/8)/√2. Its only coefficient, 1, is the second of the two kept,
  // so y = √(2/4) · cos(π(2n+1)/4) = ±½.
  std::vector<float> x(4);
  for (std::size_t n = 0; n < 4; ++n)
    x[n] = static_cast<float>(std::cos(3 * M_PI * (2.0 * static_cast<double>(n) + 1) / 8) / std::sqrt(2.0));
  const auto y = freqkv_compress(View(x, {1, 4, 1}), 2, {.high_band = true});
  EXPECT_NEAR(y[0], 0.5, 1e-7);
  EXPECT_NEAR(y[1], -0.5, 1e-7);
  const auto low = freqkv_compress(View(x, {1, 4, 1}), 2, {});
  EXPECT_NEAR(low[0], 0.0, 1e-7);
}

TEST(FreqkvCompressions, AreAsInThePaper) {
  const auto count = [](std::size_t thousand, double gamma) {
    return freqkv_compressions(thousand * 1024, {.cache_size = 4096, .sinks = 4, .gamma = gamma});
  };
  EXPECT_EQ(count(4, 0.5), 0U);
  EXPECT_EQ(count(8, 0.5), 3U);
  EXPECT_EQ(count(12, 0.5), 5U);
  EXPECT_EQ(count(16, 0.5), 7U);
  EXPECT_EQ(count(24, 0.5), 11U);
  EXPECT_EQ(count(32, 0.5), 15U);
  EXPECT_EQ(count(32, 0.25), 10U);
  EXPECT_EQ(count(32, 0.75), 29U);
}

}  // namespace
}  // namespace kvs
