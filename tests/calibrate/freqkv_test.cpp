// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "kernels/dct_resample.h"
#include "tests/calibrate/elite_golden.h"
#include "tests/calibrate/layer_harness.h"

namespace kvs {
namespace {

TEST(FreqkvCompression, AgreesWithScipyOnRealStates) {
  const std::vector<float> k = golden::keys();
  constexpr std::size_t kSinks = 4, kBody = golden::kTokens - kSinks, kKept = kBody / 2;
  std::vector<float> compressed(kKept * golden::kHeadDim);
  dct_resample({std::span(k).subspan(kSinks * golden::kHeadDim), {kBody, golden::kHeadDim}}, 0, std::sqrt(0.5),
               {compressed, {kKept, golden::kHeadDim}});
  const Json expected = golden::expected()["freqkv_k_every_17th"];
  for (std::size_t row = 0; row < expected.size(); ++row)
    for (std::size_t channel = 0; channel < golden::kHeadDim; ++channel)  // both rounded to f32; states up to 13
      EXPECT_NEAR(compressed[17 * row * golden::kHeadDim + channel], expected[row][channel].get<double>(), 1e-6);
}

/// The first channel that a cache of eight slots keeps of eight tokens, `values`, as a sum over the four slots: the
/// mean that a token of value 0 reads, times five.
double kept_sum(const std::vector<float>& values, std::vector<std::string> settings) {
  settings.insert(settings.end(), {"cache_size=8", "sinks=0"});
  const auto cache = test::layer_cache("freqkv", settings);
  const std::vector<float> k(9 * 2);
  std::vector<float> v(9 * 2);
  for (std::size_t token = 0; token < 8; ++token) v[2 * token] = values[token];
  test::LayerHarness layer(*cache, 1, 2);
  for (std::size_t token = 0; token < 8; ++token) layer.feed(k, v, 9, token);
  return 5 * double{layer.feed(k, v, 9, 8)[0]};
}

TEST(FreqkvCache, RescalingKeepsAConstantChannelAndItsAbsenceDoesNot) {
  const std::vector<float> constant(8, 5.0F);
  EXPECT_NEAR(kept_sum(constant, {}), 4 * 5, 1e-5);
  EXPECT_NEAR(kept_sum(constant, {"rescale=off"}), 4 * 5 * std::sqrt(2.0), 1e-5);  // √(N/L)
}

TEST(FreqkvCache, TheHighBandIsReadFromItsLastCoefficients) {
  // 5 and the DCT's basis vector 4 of N = 8. The vector's only coefficient, 1, is the first of the high band, so that
  // each of four rows gets √(4/8) · √(1/4); the constant is not in it.
  std::vector<float> v(8);
  for (std::size_t n = 0; n < 8; ++n)
    v[n] = static_cast<float>(5 + std::cos(std::numbers::pi * 4 * (2.0 * static_cast<double>(n) + 1) / 16) / 2);
  EXPECT_NEAR(kept_sum(v, {"band=high"}), 4 * std::sqrt(0.5) / 2, 1e-5);
  EXPECT_NEAR(kept_sum(v, {}), 4 * 5, 1e-5);
}

TEST(FreqkvCache, RecentSlotsMoveUpAsTheyAre) {
  // Six equal tokens become two of four kept slots.
  const std::vector<float> v{5, 5, 5, 5, 5, 5, 11, 23};
  EXPECT_NEAR(kept_sum(v, {"recent=2"}), 5 + 5 + 11 + 23, 1e-5);
  EXPECT_NEAR(kept_sum(v, {"recent=2", "rescale=off"}), 10 * std::sqrt(3.0) + 11 + 23, 1e-5);  // of six and two
  EXPECT_NEAR(kept_sum(v, {"recent=2", "iterate=off"}), 5 + 5 + 11 + 23, 1e-5);
  try {
    test::layer_cache("freqkv", {"cache_size=8", "sinks=0", "recent=4"});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_STREQ(error.what(), "recent: found 4, expected fewer than the 4 slots that a compression keeps");
  }
}

TEST(FreqkvCache, IsCompressedAsOftenAsInThePaper) {
  const auto compressions = [](std::size_t tokens, const std::string& gamma) {
    const auto cache = test::layer_cache("freqkv", {"cache_size=4096", gamma});
    test::LayerHarness layer(*cache, 1, 2);
    const std::vector<float> states(2 * tokens);
    layer.feed_all(states, states);
    return cache->compressions();
  };
  // ⌈(T − cache_size)/(N − L)⌉ with N = 4,092.
  EXPECT_EQ(compressions(4096, "gamma=0.5"), 0U);
  EXPECT_EQ(compressions(4097, "gamma=0.5"), 1U);
  EXPECT_EQ(compressions(8192, "gamma=0.5"), 3U);
  EXPECT_EQ(compressions(12288, "gamma=0.5"), 5U);
  EXPECT_EQ(compressions(16384, "gamma=0.5"), 7U);
  EXPECT_EQ(compressions(24576, "gamma=0.5"), 11U);
  EXPECT_EQ(compressions(32768, "gamma=0.5"), 15U);
  EXPECT_EQ(compressions(32768, "gamma=0.25"), 10U);
  EXPECT_EQ(compressions(32768, "gamma=0.75"), 29U);
}

}  // namespace
}  // namespace kvs
