// SPDX-License-Identifier: Apache-2.0
#include "analyzers/coding_gain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <vector>

#include "core/error.h"
#include "tests/analyzers/memory_source.h"

namespace kvs {
namespace {

using Value = MemorySource::Value;

const StateSet kKeysAndValues{StateKind::kKPre, StateKind::kV};

LayerMoments moments_of(const Value& value, const MomentShape& shape, std::size_t documents) {
  MemorySource inner(documents, shape.kv_heads, shape.tokens, shape.head_dim, value);
  MomentSource source(inner, shape, {0});
  for (std::size_t document = 0; document < documents; ++document)
    source.visit(document, {.layers = {0}}, [](const DocumentStates&) {});
  return source.moments().front();
}

LayerGains gains_of(const Value& value, const MomentShape& shape, std::size_t documents = 1,
                    const GainWeights& weights = {}) {
  return coding_gains(moments_of(value, shape, documents), shape, documents, true, weights);
}

MomentShape shape_of(std::size_t kv_heads, std::size_t head_dim, std::size_t tokens,
                     const StateSet& states = kKeysAndValues) {
  return {.states = states, .kv_heads = kv_heads, .head_dim = head_dim, .tokens = tokens};
}

/// ±1 patterns of 64 tokens whose means and products are zero: column n of a Hadamard matrix, n ≥ 1.
double pattern(std::size_t n, std::size_t token) { return std::popcount(n & (token % 64)) % 2 == 0 ? 1 : -1; }

/// Independent standard normal values, the same for every call.
Value white(std::size_t seed) {
  return [seed](std::size_t document, std::size_t layer, StateKind state, std::size_t head, std::size_t token,
                std::size_t channel) {
    std::seed_seq mixed{seed, document, layer, static_cast<std::size_t>(state), head, token, channel};
    std::mt19937 random(mixed);
    return std::normal_distribution<float>()(random);
  };
}

/// The increase of variances of mean 1 by the noise of a code of kFinestBits.
const double kNoise = std::pow(4, -kFinestBits);
/// f32 states and this noise, relative to gains of about 1 bit.
constexpr double kClose = 1e-4;

TEST(CodingGain, TheMeanSavesHalfTheLogOfSecondMomentOverVariance) {
  // 3 ± 1: second moment 10, variance 1.
  const LayerGains gains =
      gains_of([](auto, auto, auto, auto, std::size_t token,
                  std::size_t channel) { return static_cast<float>(3 + pattern(channel + 1, token)); },
               shape_of(1, 2, 64));
  EXPECT_NEAR(gains.states[StateKind::kKPre].layer.mean, 0.5 * std::log2(10), kClose);
  EXPECT_NEAR(gains.states[StateKind::kV].heads[0].mean, 0.5 * std::log2(10), kClose);
  EXPECT_NEAR(gains.states[StateKind::kV].layer.channels, 0, 1e-12);
}

TEST(CodingGain, ChannelsSaveTheRatioOfArithmeticAndGeometricMean) {
  // Variances: 1 and 16 in head 0, 16 and 16 in head 1. Means in head 0: 8.5 to 4; in the layer: 12.25 to 8.
  const LayerGains gains = gains_of(
      [](auto, auto, auto, std::size_t head, std::size_t token, std::size_t channel) {
        return static_cast<float>((head + channel == 0 ? 1 : 4) * pattern(2 * head + channel + 1, token));
      },
      shape_of(2, 2, 64));
  const StateGains& keys = gains.states[StateKind::kKPre];
  EXPECT_NEAR(keys.heads[0].channels, 0.5 * std::log2(8.5 / 4), kClose);
  EXPECT_NEAR(keys.heads[1].channels, 0, kClose);
  EXPECT_NEAR(keys.layer.channels, 0.5 * std::log2(12.25 / 8), kClose);
  EXPECT_NEAR(keys.layer.head, 0, kClose);
  EXPECT_NEAR(*keys.whole, 0, kClose);
}

/// Channels 0 and 1 of correlation 0.6; `second` is the position of the second channel.
Value correlated(const std::function<bool(StateKind, std::size_t head, std::size_t channel)>& second,
                 const std::function<bool(StateKind, std::size_t head, std::size_t channel)>& first) {
  return [=](std::size_t, std::size_t, StateKind state, std::size_t head, std::size_t token, std::size_t channel) {
    if (first(state, head, channel)) return static_cast<float>(pattern(1, token));
    if (second(state, head, channel)) return static_cast<float>(0.6 * pattern(1, token) + 0.8 * pattern(2, token));
    return static_cast<float>(pattern(3 + 8 * static_cast<std::size_t>(state) + 2 * head + channel, token));
  };
}

// Two variances 1 of correlation ρ: the product of the eigenvalues is 1 − ρ², and −½ log2(1 − ρ²) bits are shared by
// all values of the step.
TEST(CodingGain, CorrelationCountsInTheStepThatSeesBothChannels) {
  const double bits = -0.5 * std::log2(1 - 0.36);
  const MomentShape shape = shape_of(2, 2, 64);
  const auto at = [](StateKind wanted, std::size_t in_head, std::size_t of_channel) {
    return [=](StateKind state, std::size_t head, std::size_t channel) {
      return state == wanted && head == in_head && channel == of_channel;
    };
  };
  const auto first = at(StateKind::kKPre, 0, 0);
  const LayerGains in_head = gains_of(correlated(at(StateKind::kKPre, 0, 1), first), shape);
  EXPECT_NEAR(in_head.states[StateKind::kKPre].heads[0].head, bits / 2, kClose);
  EXPECT_NEAR(in_head.states[StateKind::kKPre].layer.head, bits / 4, kClose);
  EXPECT_NEAR(*in_head.states[StateKind::kKPre].whole, 0, kClose);
  EXPECT_NEAR(*in_head.joint, 0, kClose);

  const LayerGains in_layer = gains_of(correlated(at(StateKind::kKPre, 1, 1), first), shape);
  EXPECT_NEAR(in_layer.states[StateKind::kKPre].layer.head, 0, kClose);
  EXPECT_NEAR(*in_layer.states[StateKind::kKPre].whole, bits / 4, kClose);
  EXPECT_NEAR(*in_layer.joint, 0, kClose);

  const LayerGains across = gains_of(correlated(at(StateKind::kV, 1, 0), first), shape);
  EXPECT_NEAR(*across.states[StateKind::kKPre].whole, 0, kClose);
  EXPECT_NEAR(*across.states[StateKind::kV].whole, 0, kClose);
  EXPECT_NEAR(*across.joint, bits / 8, kClose);
}

TEST(CodingGain, AConstantChannelSavesWhatTheFinestCodeBounds) {
  // Variances 1 and 0, each increased by ε = ½ · 4⁻⁸: ½ log2(½ + ε) − ¼ log2((1 + ε) ε).
  const LayerGains gains =
      gains_of([](auto, auto, auto, auto, std::size_t token,
                  std::size_t channel) { return static_cast<float>(channel == 0 ? pattern(1, token) : 5.0); },
               shape_of(1, 2, 64));
  const double noise = kNoise / 2;
  EXPECT_NEAR(gains.states[StateKind::kKPre].layer.channels,
              0.5 * std::log2(0.5 + noise) - 0.25 * std::log2((1 + noise) * noise), 1e-9);
  EXPECT_NEAR(gains.states[StateKind::kKPre].layer.head, 0, 1e-9);
}

TEST(CodingGain, AStateThatNeverChangesHasNothingToSave) {
  const LayerGains gains = gains_of(
      [](auto, auto, StateKind state, auto, std::size_t token, std::size_t channel) {
        return static_cast<float>(state == StateKind::kV ? 0.1 : pattern(channel + 1, token));
      },
      shape_of(2, 2, 64));
  const StateGains& values = gains.states[StateKind::kV];
  for (const double gain : {values.layer.mean, values.layer.channels, values.layer.head, *values.whole, *gains.joint})
    EXPECT_NEAR(gain, 0, 1e-12);
  EXPECT_THAT(values.layer.tokens, ::testing::Each(0.0));
}

// x_t = a x_{t−1} + √(1 − a²) w_t has autocovariance a^τ. Two tokens have variances 1 ± a, which gives −¼ log2(1 − a²)
// bits per value. For more tokens the DCT's variances follow from that autocovariance. 16 documents of 1,024 tokens, 4
// channels: each c(τ) is accurate to about √((1 + a²) / (1 − a²) / 65536) = 0.01, and a gain, whose smallest variance
// is (1 − a) / (1 + a) = 0.11, to some 0.02.
TEST(CodingGain, BlocksOfAnAutoregressiveProcessSaveWhatItsAutocovarianceSays) {
  constexpr double kMemory = 0.8;
  constexpr std::size_t kTokens = 1024, kChannels = 4;
  std::vector<float> values(16 * kTokens * kChannels);
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (std::size_t document = 0; document < 16; ++document) {
    std::array<double, kChannels> x{};
    for (double& value : x) value = normal(random);
    for (std::size_t token = 0; token < kTokens; ++token) {
      for (std::size_t channel = 0; channel < kChannels; ++channel) {
        values[(document * kTokens + token) * kChannels + channel] = static_cast<float>(x[channel]);
        x[channel] = kMemory * x[channel] + std::sqrt(1 - kMemory * kMemory) * normal(random);
      }
    }
  }
  const LayerGains gains =
      gains_of([&](std::size_t document, auto, auto, auto, std::size_t token,
                   std::size_t channel) { return values[(document * kTokens + token) * kChannels + channel]; },
               shape_of(1, kChannels, kTokens, {StateKind::kV}), 16);
  const StepGains& layer = gains.states[StateKind::kV].layer;
  ASSERT_EQ(layer.tokens.size(), kBlockTokens.size());
  EXPECT_NEAR(layer.tokens[0], -0.25 * std::log2(1 - kMemory * kMemory), 0.02);
  for (std::size_t n = 0; n < kBlockTokens.size(); ++n) {
    const auto block = static_cast<double>(kBlockTokens[n]);
    double expected = 0;
    for (double f = 0; f < block; ++f) {
      double power = 0;
      for (double i = 0; i < block; ++i)
        for (double j = 0; j < block; ++j)
          power += (f == 0 ? 1 : 2) / block * std::cos(std::numbers::pi * f * (2 * i + 1) / (2 * block)) *
                   std::cos(std::numbers::pi * f * (2 * j + 1) / (2 * block)) * std::pow(kMemory, std::abs(i - j));
      expected -= 0.5 * std::log2(power) / block;
    }
    EXPECT_NEAR(layer.tokens[n], expected, 0.02) << block;
    EXPECT_NEAR(layer.tokens_by_channel[n], expected, 0.02) << block;
  }
}

TEST(CodingGain, AlongTokensTheMeanIsTheFirstCoefficientUnlessItIsRemoved) {
  // White noise around 8. About zero the autocovariance is 64 + δ(τ), so one of 16 coefficients has 16 · 64 + 1 and the
  // others 1: ½ log2 65 − 1/32 log2 1025. With the mean removed no gain is left. 2,048 tokens: c(τ) is accurate to
  // about 0.02.
  const MomentShape shape = shape_of(1, 2, 512, {StateKind::kKPre});
  const auto value = [](auto document, auto layer, auto state, auto head, auto token, auto channel) {
    return 8 + white(3)(document, layer, state, head, token, channel);
  };
  const LayerMoments moments = moments_of(value, shape, 4);
  const LayerGains kept = coding_gains(moments, shape, 4, false);
  const LayerGains removed = coding_gains(moments, shape, 4, true);
  const StepGains& with = kept.states[StateKind::kKPre].layer;
  EXPECT_EQ(with.mean, 0);
  EXPECT_NEAR(with.tokens_by_channel.back(), 0.5 * std::log2(65) - std::log2(1025) / 32, 0.03);
  EXPECT_NEAR(removed.states[StateKind::kKPre].layer.tokens_by_channel.back(), 0, 0.03);
  EXPECT_NEAR(removed.states[StateKind::kKPre].layer.mean, 0.5 * std::log2(65), 0.03);
}

TEST(CodingGain, AnOffsetChangesNothingOnceTheMeanIsRemoved) {
  // Values are eighths below 16 and the offset is 64: exact in f32, so only double's rounding differs.
  const auto value = [](double offset) {
    return [offset](auto document, auto layer, auto state, auto head, auto token, auto channel) {
      return static_cast<float>(offset + std::round(8 * white(5)(document, layer, state, head, token, channel)) / 8);
    };
  };
  const MomentShape shape = shape_of(2, 3, 40);
  const LayerGains plain = gains_of(value(0), shape, 3), moved = gains_of(value(64), shape, 3);
  for (const StateKind state : kKeysAndValues) {
    const StateGains &a = plain.states[state], &b = moved.states[state];
    EXPECT_NEAR(a.layer.channels + a.layer.head, b.layer.channels + b.layer.head, 1e-9);
    EXPECT_NEAR(*a.whole, *b.whole, 1e-9);
    for (std::size_t n = 0; n < kBlockTokens.size(); ++n) EXPECT_NEAR(a.layer.tokens[n], b.layer.tokens[n], 1e-9);
  }
  EXPECT_NEAR(*plain.joint, *moved.joint, 1e-9);
}

TEST(CodingGain, NoStepCostsAnything) {
  const MomentShape shape = shape_of(2, 3, 24);
  for (std::size_t seed = 0; seed < 8; ++seed) {
    const Value noise = white(seed);
    const auto mixed = [&](auto document, auto layer, auto state, auto head, auto token, auto channel) {
      return 1 + noise(document, layer, state, head, token, channel) * static_cast<float>(1 + channel) +
             noise(document, layer, StateKind::kKPre, 0, token, 0);
    };
    for (const bool removed : {true, false}) {
      const LayerGains gains = coding_gains(moments_of(mixed, shape, 2), shape, 2, removed);
      for (const StateKind state : kKeysAndValues) {
        const StateGains& of_state = gains.states[state];
        for (const StepGains& steps : of_state.heads) {
          for (const double gain : {steps.mean, steps.channels, steps.head}) EXPECT_GE(gain, 0);
          EXPECT_THAT(steps.tokens, ::testing::Each(::testing::Ge(0)));
          EXPECT_THAT(steps.tokens_by_channel, ::testing::Each(::testing::Ge(0)));
        }
        EXPECT_GE(*of_state.whole, 0);
      }
      EXPECT_GE(*gains.joint, 0);
    }
  }
}

TEST(CodingGain, WeightsAddWhatTheirOwnMeansDiffer) {
  // White values under A = [2 1; 1 2]: the diagonals agree, the determinant is 3, not 4: ½ · ½ log2(4 / 3). The noise
  // of A (2 · 4⁻⁸) stays below the tolerance.
  const MomentShape shape = shape_of(1, 2, 64);
  const Value value = [](auto, auto, StateKind state, auto, std::size_t token, std::size_t channel) {
    return static_cast<float>(pattern(1 + 2 * static_cast<std::size_t>(state) + channel, token));
  };
  GainWeights weights;
  weights[StateKind::kV] =
      output_gram_weights(std::vector<std::vector<double>>{{1.5, 1, 1, 0.5}, {0.5, 0, 0, 1.5}}, 1, 2);
  weights[StateKind::kKPre] = StateWeights{.diagonal = {1, 16}, .log2_determinant = {4}};
  const LayerGains gains = gains_of(value, shape, 1, weights);
  const StateGains &values = gains.states[StateKind::kV], &keys = gains.states[StateKind::kKPre];
  EXPECT_NEAR(values.weighted_layer->channels, 0, kClose);
  EXPECT_NEAR(values.weighted_layer->head, 0.25 * std::log2(4.0 / 3), kClose);
  EXPECT_NEAR(values.layer.head, 0, kClose);
  EXPECT_NEAR(keys.weighted_layer->channels, 0.5 * std::log2(8.5 / 4), kClose);
  EXPECT_NEAR(keys.weighted_heads[0].head, 0, kClose);
}

TEST(CodingGain, QueriesWeighTheKeysTheyMeet) {
  // Two KV heads of two channels, one query head each: channel 1 of head 1 meets queries of three times the amplitude.
  MomentShape shape = shape_of(2, 2, 64);
  shape.queries = true;
  const LayerMoments moments = moments_of(
      [](auto, auto, auto, std::size_t head, std::size_t token, std::size_t channel) {
        return static_cast<float>((head + channel == 2 ? 3 : 1) * pattern(2 * head + channel + 1, token));
      },
      shape, 1);
  EXPECT_THAT(moments.queries, ::testing::ElementsAre(64, 64, 64, 9 * 64));
  const StateWeights weights = query_weights(moments, shape);
  EXPECT_NEAR(weights.diagonal[3] / weights.diagonal[2], 9, 0.01);  // the noise: 3 · 4⁻⁸
  EXPECT_NEAR(weights.log2_determinant[1] - weights.log2_determinant[0], std::log2(9), 0.01);
}

TEST(CodingGain, LeavesOutWhatTooFewTokensCannotTell) {
  const Value value = white(1);
  EXPECT_FALSE(gains_of(value, shape_of(2, 4, 15)).states[StateKind::kV].whole);  // 8 channels need 16 tokens
  EXPECT_TRUE(gains_of(value, shape_of(2, 4, 16)).states[StateKind::kV].whole);
  EXPECT_FALSE(gains_of(value, shape_of(2, 4, 31)).joint);
  EXPECT_TRUE(gains_of(value, shape_of(2, 4, 32)).joint);
  EXPECT_THROW(gains_of(value, shape_of(2, 4, 7)), Error);
  EXPECT_EQ(gains_of(value, shape_of(2, 4, 12)).states[StateKind::kV].layer.tokens.size(), 2U);  // 2 and 4 tokens
}

// White noise has no gain, so the mean of the measurements is the optimism: 64 layers of 48 tokens, 8 channels. One
// measurement's standard deviation is below 0.05 bit, the mean's below 0.01.
TEST(Optimism, IsWhatWhiteNoiseSeemsToSave) {
  const MomentShape shape = shape_of(1, 8, 48, {StateKind::kV});
  double channels = 0, head = 0;
  for (std::size_t seed = 0; seed < 64; ++seed) {
    const StepGains steps = gains_of(white(seed), shape).states[StateKind::kV].layer;
    channels += steps.channels / 64;
    head += steps.head / 64;
  }
  EXPECT_NEAR(head, optimism(8, 48) - optimism(1, 48), 0.01);
  EXPECT_GT(optimism(8, 48) - optimism(1, 48), 0.05);
  // The channels' arithmetic mean is also over 8 estimates: E log of its χ² with 8 · 47 degrees.
  EXPECT_NEAR(channels, optimism(1, 48) - optimism(1, 8 * 47 + 1), 0.005);
}

TEST(IdleShare, FollowsReverseWaterFilling) {
  // 2 bits for each of two components: 4 bits on the first reach 256 · 4⁻⁴ = 1, the variance of the second.
  EXPECT_EQ(idle_share(std::vector<double>{256, 1}, 2), 0.5);
  EXPECT_EQ(idle_share(std::vector<double>{1, 255}, 2), 0);
  EXPECT_EQ(idle_share(std::vector<double>{1, 1, 1, 1}, 2), 0);
  EXPECT_EQ(idle_share(std::vector<double>{1, 0, 0, 0}, 2), 0.75);
  EXPECT_EQ(idle_share(std::vector<double>{0, 0}, 2), 0);
}

}  // namespace
}  // namespace kvs
