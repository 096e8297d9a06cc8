// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "tests/calibrate/elite_golden.h"
#include "tests/calibrate/layer_harness.h"

namespace kvs {
namespace {

/// States of one KV head, [token, head_dim].
struct Text {
  std::vector<float> k, v;
  std::size_t head_dim;

  std::size_t tokens() const { return k.size() / head_dim; }
};

/// Feeds a cache a text, then a token whose value is 0. @return the mean of the values that this token reads
std::vector<float> read_after(LayerCache& cache, Text text) {
  test::LayerHarness layer(cache, 1, text.head_dim);
  text.k.resize(text.k.size() + text.head_dim);
  text.v.resize(text.v.size() + text.head_dim);
  const std::size_t all = text.tokens();
  for (std::size_t token = 0; token + 1 < all; ++token) layer.feed(text.k, text.v, all, token);
  return layer.feed(text.k, text.v, all, all - 1);
}

void expect_kept(LayerCache& cache, const Text& text, const std::vector<std::size_t>& kept) {
  const std::vector<float> found = read_after(cache, text);
  for (std::size_t channel = 0; channel < text.head_dim; ++channel) {
    double sum = 0;
    for (const std::size_t token : kept) sum += double{text.v[token * text.head_dim + channel]};
    EXPECT_NEAR(found[channel], sum / static_cast<double>(kept.size() + 1), 2e-6);
  }
}

TEST(LagkvCache, AgreesWithNumpyOnRealStates) {
  Text text{golden::keys(), golden::values(), golden::kHeadDim};
  const golden::Rotation rotation(golden::kTokens);
  constexpr std::size_t kHalf = golden::kHeadDim / 2;
  for (std::size_t i = 0; i < golden::kTokens * kHalf; ++i) {  // k after RoPE
    float& low = text.k[i / kHalf * golden::kHeadDim + i % kHalf];
    float& high = text.k[i / kHalf * golden::kHeadDim + i % kHalf + kHalf];
    const float before = low, cos = rotation.cosine[i], sin = rotation.sine[i];
    low = before * cos - high * sin;
    high = high * cos + before * sin;
  }
  const auto cache = test::layer_cache("lagkv", {"sinks=16", "lag=64", "ratio=0.25"});
  expect_kept(*cache, text, golden::expected()["lagkv_keep"].get<std::vector<std::size_t>>());
}

// Two channels, S = 1, L = 2: tokens 1 and 2 are scored against 3 and 4, and one of them stays.
void expect_tiny(const std::string& variant, const std::vector<float>& k, const std::vector<float>& v,
                 const std::vector<std::size_t>& kept) {
  const auto cache = test::layer_cache("lagkv", {"sinks=1", "lag=2", "ratio=0.5", "variant=" + variant});
  expect_kept(*cache, {k, v, 2}, kept);
}

TEST(LagkvCache, KeepsTheTokenThatSpreadsMostOverTheReferenceRange) {
  // The reference spans [0, 2] × [0, 4]. Token 1 scales to (1, 0), token 2 to (0.5, 0.5): deviations √½ and 0.
  const std::vector<float> spread{9, 9, 2, 0, 1, 2, 0, 0, 2, 4, 7, 7};
  expect_tiny("lag", spread, spread, {0, 1, 3, 4, 5});
}

TEST(LagkvCache, TheFirstOfEqualTokensStays) {
  // Keys of equal length.
  const std::vector<float> same{9, 9, 1, 0, -1, 0, -2, 0, 2, 0};
  expect_tiny("l2", same, same, {0, 1, 3, 4});
}

TEST(LagkvCache, AChannelThatIsConstantInTheReferenceContributesNothing) {
  // Channel 1 is 5 in the reference. With 0 in this channel, token 1 scales to (0, 0) and token 2 to (1, 0), which
  // stays.
  const std::vector<float> constant{9, 9, 0, 100, 2, -100, 0, 5, 2, 5};
  expect_tiny("lag", constant, constant, {0, 2, 3, 4});
}

TEST(LagkvCache, LocalScalesByThePartitionItself) {
  const std::vector<float> x{9, 9, 0, 3, 4, 3, 0, 0, 100, 1};
  // Reference [0, 100] × [0, 1]: token 1 scales to (0, 3), token 2 to (0.04, 3): token 1 spreads more.
  expect_tiny("lag", x, x, {0, 1, 3, 4});
  // Own range [0, 4], channel 1 constant: token 1 scales to (0, 0), token 2 to (1, 0).
  expect_tiny("local", x, x, {0, 2, 3, 4});
}

TEST(LagkvCache, L2KeepsTheShortestKeyWhateverTheValues) {
  expect_tiny("l2", {9, 9, 3, 4, 1, 1, 0, 0, 2, 4}, {0, 0, 9, -9, 0, 0, 0, 0, 1, 1}, {0, 2, 3, 4});
}

TEST(LagkvCache, TheValuesScoreHasItsWeight) {
  // The reference spans [0, 2] × [0, 4]. As keys tokens 1 and 2 deviate by √½ and 0, as values by 0 and √½ / 2.
  const std::vector<float> k{9, 9, 2, 0, 1, 2, 0, 0, 2, 4}, v{9, 9, 1, 2, 1, 0, 0, 0, 2, 4};
  for (const auto& [weight, kept] : {std::pair("0", 1), {"1", 1}, {"4", 2}}) {
    const auto cache =
        test::layer_cache("lagkv", {"sinks=1", "lag=2", "ratio=0.5", std::string("value_weight=") + weight});
    expect_kept(*cache, {k, v, 2}, {0, static_cast<std::size_t>(kept), 3, 4});
  }
}

TEST(LagkvCache, ShortTextsStayWhole) {  // S + 2L = 5 tokens would be needed
  expect_tiny("l2", {9, 9, 3, 4, 1, 1, 0, 0}, {0, 0, 9, -9, 1, 2, 3, 4}, {0, 1, 2, 3});
}

TEST(LagkvCache, RefusesStatesThatAreNotNumbers) {
  std::vector<float> x(5 * 2, 1.0F);
  x[2] = std::numeric_limits<float>::quiet_NaN();
  x[6] = 2;
  EXPECT_THROW(expect_tiny("lag", x, x, {}), Error);
}

TEST(LagkvCache, HoldsAsManyTokensAsInThePaper) {
  // S + ⌊rL⌋(⌊(T − S)/L⌋ − 1) + L + (T − S) mod L, or T below S + 2L.
  const auto expect_length = [](std::size_t tokens, const std::string& lag, const std::string& ratio,
                                std::size_t kept) {
    const auto cache = test::layer_cache("lagkv", {lag, ratio});
    test::LayerHarness layer(*cache, 1, 2);
    const std::vector<float> states(2 * tokens, 1.0F);
    layer.feed_all(states, states);
    EXPECT_EQ(cache->bytes().used, kept * 2 * 2 * sizeof(float)) << tokens << " " << lag << " " << ratio;
  };
  expect_length(16384, "lag=128", "ratio=0.5", 8320);
  expect_length(16384, "lag=128", "ratio=0.25", 4288);
  expect_length(16384, "lag=128", "ratio=0.125", 2272);
  expect_length(16384, "lag=1024", "ratio=0.5", 9216);
  expect_length(16384, "lag=1024", "ratio=0.25", 5632);
  expect_length(16384, "lag=1024", "ratio=0.125", 3840);
  expect_length(900, "lag=64", "ratio=0.25", 324);
  expect_length(144, "lag=64", "ratio=0.25", 96);
  expect_length(143, "lag=64", "ratio=0.25", 143);
}

TEST(LagkvCache, HeadsKeepTokensOfTheirOwn) {
  // Head 0 spreads most at token 1, head 1 at token 2.
  const std::vector<float> low{9, 9, 2, 0, 1, 2, 0, 0, 2, 4}, high{9, 9, 1, 2, 2, 0, 0, 0, 2, 4};
  std::vector<float> states = low;
  states.insert(states.end(), high.begin(), high.end());
  const auto cache = test::layer_cache("lagkv", {"sinks=1", "lag=2", "ratio=0.5"});
  test::LayerHarness layer(*cache, 2, 2);
  layer.feed_all(states, states);
  // A token of value 0 reads the mean of tokens 0, 1 (or 2), 3, 4 and itself.
  const std::vector<float> none(2 * 2);
  const std::vector<float> found = layer.feed(none, none, 1, 0);
  EXPECT_THAT(found, ::testing::Pointwise(::testing::FloatNear(2e-6F), {13 / 5.0F, 13 / 5.0F, 13 / 5.0F, 13 / 5.0F}));
}

}  // namespace
}  // namespace kvs
