#include "policy/lagkv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "tests/calibrate/elite_golden.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;
using View = TensorView<const float, 3>;

TEST(LagkvKeep, AgreesWithNumpyOnRealStates) {
  std::vector<float> k = golden::keys();
  const std::vector<float> v = golden::values();
  const golden::Rotation rotation(golden::kTokens);
  constexpr std::size_t kHalf = golden::kHeadDim / 2;
  for (std::size_t i = 0; i < golden::kTokens * kHalf; ++i) {  // k after RoPE
    float& low = k[i / kHalf * golden::kHeadDim + i % kHalf];
    float& high = k[i / kHalf * golden::kHeadDim + i % kHalf + kHalf];
    const float before = low, cos = rotation.cosine[i], sin = rotation.sine[i];
    low = before * cos - high * sin;
    high = high * cos + before * sin;
  }
  const std::array<std::size_t, 3> shape{1, golden::kTokens, golden::kHeadDim};
  const auto keep = lagkv_keep(View(k, shape), View(v, shape), {.sinks = 16, .lag = 64, .ratio = 0.25});
  EXPECT_EQ(keep[0], golden::expected()["lagkv_keep"].get<std::vector<std::size_t>>());
}

// One head, two channels, S = 1, L = 2: tokens 1 and 2 are scored against 3 and 4, and 5 remains.
constexpr LagkvOptions kTiny{.sinks = 1, .lag = 2, .ratio = 0.5};

TEST(LagkvKeep, KeepsTheTokenThatSpreadsMostOverTheReferenceRange) {
  // The reference spans [0, 2] × [0, 4]. Token 1 scales to (1, 0), token 2 to (0.5, 0.5): deviations √½ and 0.
  const std::vector<float> spread{9, 9, 2, 0, 1, 2, 0, 0, 2, 4, 7, 7};
  const auto keep = lagkv_keep(View(spread, {1, 6, 2}), View(spread, {1, 6, 2}), kTiny);
  EXPECT_THAT(keep[0], ElementsAre(0, 1, 3, 4, 5));
}

TEST(LagkvKeep, TheFirstOfEqualTokensStays) {
  const std::vector<float> same{9, 9, 1, 2, 1, 2, 0, 0, 2, 4};
  EXPECT_THAT(lagkv_keep(View(same, {1, 5, 2}), View(same, {1, 5, 2}), kTiny)[0], ElementsAre(0, 1, 3, 4));
}

TEST(LagkvKeep, AChannelThatIsConstantInTheReferenceContributesNothing) {
  // Channel 1 is 5 in the reference. With 0 for it, token 1 scales to (0, 0) and token 2 to (1, 0), which stays.
  const std::vector<float> constant{9, 9, 0, 100, 2, -100, 0, 5, 2, 5};
  EXPECT_THAT(lagkv_keep(View(constant, {1, 5, 2}), View(constant, {1, 5, 2}), kTiny)[0], ElementsAre(0, 2, 3, 4));
}

TEST(LagkvKeep, LocalScalesByThePartitionItself) {
  const std::vector<float> x{9, 9, 0, 3, 4, 3, 0, 0, 100, 1};
  LagkvOptions options = kTiny;
  // Reference [0, 100] × [0, 1]: token 1 scales to (0, 3), token 2 to (0.04, 3): token 1 spreads more.
  EXPECT_THAT(lagkv_keep(View(x, {1, 5, 2}), View(x, {1, 5, 2}), options)[0], ElementsAre(0, 1, 3, 4));
  // Own range [0, 4], channel 1 constant: token 1 scales to (0, 0), token 2 to (1, 0).
  options.variant = LagkvVariant::kLocal;
  EXPECT_THAT(lagkv_keep(View(x, {1, 5, 2}), View(x, {1, 5, 2}), options)[0], ElementsAre(0, 2, 3, 4));
}

TEST(LagkvKeep, L2KeepsTheShortestKeyWhateverTheValues) {
  const std::vector<float> k{9, 9, 3, 4, 1, 1, 0, 0, 2, 4}, v{0, 0, 9, -9, 0, 0, 0, 0, 1, 1};
  LagkvOptions options = kTiny;
  options.variant = LagkvVariant::kL2;
  EXPECT_THAT(lagkv_keep(View(k, {1, 5, 2}), View(v, {1, 5, 2}), options)[0], ElementsAre(0, 2, 3, 4));
}

TEST(LagkvKeep, ShortCachesStayWhole) {
  const std::vector<float> x(4 * 2, 1.0F);  // S + 2L = 5 tokens would be needed
  EXPECT_THAT(lagkv_keep(View(x, {1, 4, 2}), View(x, {1, 4, 2}), kTiny)[0], ElementsAre(0, 1, 2, 3));
}

TEST(LagkvKeep, RefusesStatesThatAreNotNumbersAndOptionsOutOfRange) {
  std::vector<float> x(5 * 2, 1.0F);
  x[2] = std::numeric_limits<float>::quiet_NaN();
  x[6] = 2;
  EXPECT_THROW(lagkv_keep(View(x, {1, 5, 2}), View(x, {1, 5, 2}), kTiny), Error);
  EXPECT_THROW(lagkv_length(10, {.sinks = 1, .lag = 0, .ratio = 0.5}), Error);
  EXPECT_THROW(lagkv_length(10, {.sinks = 1, .lag = 2, .ratio = std::nan("")}), Error);
}

TEST(LagkvLength, IsAsInThePaper) {
  const auto length = [](std::size_t tokens, std::size_t lag, double ratio) {
    return lagkv_length(tokens, {.sinks = 16, .lag = lag, .ratio = ratio});
  };
  EXPECT_EQ(length(16384, 128, 0.5), 8320U);
  EXPECT_EQ(length(16384, 128, 0.25), 4288U);
  EXPECT_EQ(length(16384, 128, 0.125), 2272U);
  EXPECT_EQ(length(16384, 1024, 0.5), 9216U);
  EXPECT_EQ(length(16384, 1024, 0.25), 5632U);
  EXPECT_EQ(length(16384, 1024, 0.125), 3840U);
  EXPECT_EQ(length(900, 64, 0.25), 324U);
  EXPECT_EQ(length(143, 64, 0.25), 143U);  // one token below S + 2L
}

TEST(LagkvRatio, IsTheLargestThatFitsTheBudget) {
  for (const std::size_t lag : {64, 100, 128}) {
    LagkvOptions options{.sinks = 16, .lag = lag, .ratio = 0};
    for (std::size_t budget = 300; budget < 2000; budget += 13) {
      const auto ratio = lagkv_ratio(2000, budget, options);
      ASSERT_TRUE(ratio.has_value());
      options.ratio = *ratio;
      EXPECT_LE(lagkv_length(2000, options), budget);
      options.ratio = *ratio + 1.5 / static_cast<double>(lag);  // one token more, whatever the rounding
      if (options.ratio > 1) continue;
      EXPECT_GT(lagkv_length(2000, options), budget);
    }
  }
}

TEST(LagkvRatio, ThereIsNoneBelowTheSinksTheLastPartitionAndTheRemainder) {
  // T = 1024, S = 16, L = 64: 16 + 64 + 1008 mod 64 = 128 tokens stay at r = 0: 12.5 %.
  EXPECT_FALSE(lagkv_ratio(1024, 127, {.sinks = 16, .lag = 64, .ratio = 0}).has_value());
  EXPECT_EQ(lagkv_ratio(1024, 128, {.sinks = 16, .lag = 64, .ratio = 0}), 0.0);
}

}  // namespace
}  // namespace kvs
