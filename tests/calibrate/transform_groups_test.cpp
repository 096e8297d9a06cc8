// SPDX-License-Identifier: Apache-2.0
// Layers that share a row: their caches, and the sums and bases that they are calibrated from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "caches/full.h"
#include "calibrate/transform/basis.h"
#include "calibrate/transform/cache.h"
#include "calibrate/transform/calibration.h"
#include "calibrate/transform/entropy_model.h"
#include "core/error.h"
#include "tests/analyzers/memory_source.h"
#include "tests/calibrate/layer_harness.h"

namespace kvs {
namespace {

constexpr std::size_t kGroupLayers = 2, kGroupHeads = 1, kGroupWidth = 8, kGroupTokens = 40, kGroupRecent = 5,
                      kGroupSinks = 3, kGroupValues = 2 * kGroupHeads * kGroupWidth;

/// Two layers whose coefficients are twice the values of both, in reverse order; 4 bits each.
TransformLayer reversing_group(float threshold, double outliers) {
  constexpr std::size_t kAll = kGroupLayers * kGroupValues;
  TransformLayer layer{.layer = 0,
                       .mean = std::vector<float>(kAll, 0.5F),
                       .analysis = std::vector<float>(kAll * kAll),
                       .synthesis = std::vector<float>(kAll * kAll),
                       .bits = std::vector<std::size_t>(kAll, 4),
                       .weights = std::vector<float>(kAll, 1),
                       .threshold = threshold,
                       .outliers = outliers,
                       .books = test::random_values(kTrellisBooks, 9),
                       .sinks = kGroupSinks,
                       .recent = kGroupRecent,
                       .others = {1}};
  for (std::size_t n = 0; n < kAll; ++n) {
    layer.analysis[n * kAll + kAll - 1 - n] = 2;
    layer.synthesis[n * kAll + kAll - 1 - n] = 0.5F;
  }
  for (float& entry : layer.books) entry *= 3;
  return layer;
}

/// The same two layers in the storage form, with half a step for a value of 1.
TransformLayer stored_group() {
  TransformLayer layer = reversing_group(0, 0);
  layer.bits.clear();
  layer.books.clear();
  layer.scales.assign(layer.weights.size(), 8);
  layer.entropy = std::make_shared<const EntropyModel>(laplacian_model());
  return layer;
}

class TransformGroups : public ::testing::Test {
 protected:
  using Caches = std::vector<std::unique_ptr<LayerCache>>;

  static Caches caches(const TransformLayer& layer) {
    const auto full = make_full_cache();
    return make_group_caches(make_transform_products(test::LayerHarness(*full, kGroupHeads, kGroupWidth).backend(),
                                                     layer, {kGroupHeads, kGroupWidth}));
  }
  std::vector<float> feed(Caches& caches, std::size_t layer, std::size_t token, std::size_t count, std::size_t window,
                          float query = 0) {
    return test::LayerHarness(*caches[layer], kGroupHeads, kGroupWidth, window, 0.3F)
        .feed(k_[layer], v_[layer], kGroupTokens, token, query, count);
  }
  /// Feeds all tokens but the last to both layers, at most `group` at once and no more than the caches take.
  void feed_all(Caches& caches, std::size_t group, std::size_t window) {
    for (std::size_t token = 0, count = 0; token + 1 < kGroupTokens; token += count) {
      count = std::min({group, kGroupTokens - 1 - token, caches[0]->max_tokens_per_call()});
      for (std::size_t layer = 0; layer < kGroupLayers; ++layer) (void)feed(caches, layer, token, count, window);
    }
  }
  static std::size_t stored(const Caches& caches) { return caches[0]->bytes().stored + caches[1]->bytes().stored; }

  std::vector<float> states(int seed) const {
    return test::random_values(kGroupHeads * kGroupTokens * kGroupWidth, seed);
  }
  std::vector<float> k_[kGroupLayers] = {states(1), states(2)}, v_[kGroupLayers] = {states(3), states(4)};
};

TEST_F(TransformGroups, HoldTheSameAtOnceAndTokenByToken) {
  for (const float threshold : {100.0F, 0.6F})
    for (const std::size_t window : {0, 12}) {
      SCOPED_TRACE(::testing::Message() << threshold << ", window " << window);
      Caches whole = caches(reversing_group(threshold, 0.2)), single = caches(reversing_group(threshold, 0.2)),
             groups = caches(reversing_group(threshold, 0.2));
      feed_all(whole, kGroupTokens, window);
      feed_all(single, 1, window);
      feed_all(groups, 3, window);
      EXPECT_EQ(stored(whole), stored(single));
      EXPECT_EQ(stored(whole), stored(groups));
      for (std::size_t layer = 0; layer < kGroupLayers; ++layer) {
        const std::vector<float> read = feed(whole, layer, kGroupTokens - 1, 1, window, 0.7F);
        EXPECT_EQ(read, feed(single, layer, kGroupTokens - 1, 1, window, 0.7F));
        EXPECT_EQ(read, feed(groups, layer, kGroupTokens - 1, 1, window, 0.7F));
      }
    }
}

TEST_F(TransformGroups, HoldTheSameBlocksAtOnceAndTokenByToken) {
  for (const std::size_t window : {0, 12}) {
    Caches whole = caches(stored_group()), single = caches(stored_group());
    feed_all(whole, kGroupTokens, window);
    feed_all(single, 1, window);
    EXPECT_EQ(stored(whole), stored(single));
    for (std::size_t layer = 0; layer < kGroupLayers; ++layer)
      EXPECT_EQ(feed(whole, layer, kGroupTokens - 1, 1, window, 0.7F),
                feed(single, layer, kGroupTokens - 1, 1, window, 0.7F));
  }
}

/// Random values are within 1 of 0.5, so errors are those of quantisers with a spacing of two steps: 4 / 2 units.
TEST_F(TransformGroups, InTheStorageFormAreReadWithinAStep) {
  Caches fine = caches(stored_group());
  feed_all(fine, kGroupTokens, 0);
  for (std::size_t layer = 0; layer < kGroupLayers; ++layer) {
    const auto plain = make_full_cache();
    test::LayerHarness exactly(*plain, kGroupHeads, kGroupWidth, 0, 0.3F);
    (void)exactly.feed(k_[layer], v_[layer], kGroupTokens, 0, 0, kGroupTokens - 1);
    const std::vector<float> expected = exactly.feed(k_[layer], v_[layer], kGroupTokens, kGroupTokens - 1, 0.7F, 1),
                             found = feed(fine, layer, kGroupTokens - 1, 1, 0, 0.7F);
    ASSERT_EQ(found.size(), expected.size());
    double error = 0;
    for (std::size_t n = 0; n < found.size(); ++n) error = std::max(error, std::abs(1.0 * found[n] - expected[n]));
    EXPECT_LT(error, 1);
    EXPECT_GT(error, 1e-4);
  }
}

TEST_F(TransformGroups, TakeSoManyTokensThatAllLayersAreCodedTogether) {
  Caches group = caches(reversing_group(100, 0));
  EXPECT_EQ(group[0]->max_tokens_per_call(), kGroupSinks + 2 * kGroupRecent);
  EXPECT_THROW((void)feed(group, 0, 0, kGroupSinks + 2 * kGroupRecent + 1, 0), Error);
  for (std::size_t layer = 0; layer < kGroupLayers; ++layer)
    (void)feed(group, layer, 0, kGroupSinks + 2 * kGroupRecent, 0);
  EXPECT_EQ(group[0]->max_tokens_per_call(), kGroupRecent);  // the older half is coded
  (void)feed(group, 0, kGroupSinks + 2 * kGroupRecent, 2, 0);
  EXPECT_EQ(group[0]->max_tokens_per_call(), kGroupRecent - 2);
  EXPECT_EQ(group[1]->max_tokens_per_call(), kGroupRecent);
}

TEST_F(TransformGroups, CountOneGainAndOneStream) {
  Caches group = caches(reversing_group(1e9F, 1));
  feed_all(group, kGroupTokens, 0);
  constexpr std::size_t kAfter = kGroupTokens - 1 - kGroupSinks,
                        kCoded = (kAfter - kGroupRecent) / kGroupRecent * kGroupRecent,
                        kRow = kGroupLayers * kGroupValues * 2, kCode = 2 + kGroupLayers * kGroupValues / 2;
  EXPECT_EQ(stored(group), (kGroupTokens - 1 - kCoded) * kRow + kCoded * kCode);
  EXPECT_EQ(group[1]->bytes().stored, (kGroupTokens - 1 - kCoded) * kRow / 2);
  Caches all_outliers = caches(reversing_group(-1, 1));
  feed_all(all_outliers, kGroupTokens, 0);
  EXPECT_EQ(stored(all_outliers), (kGroupTokens - 1 - kCoded) * kRow + kCoded * (kCode + kRow + 4));
}

TEST_F(TransformGroups, OutliersAreReadInFullInEveryLayer) {
  Caches group = caches(reversing_group(-1, 1));  // every token is an outlier, in f16
  feed_all(group, kGroupTokens, 0);
  for (std::size_t layer = 0; layer < kGroupLayers; ++layer) {
    const std::vector<float> read = feed(group, layer, kGroupTokens - 1, 1, 0);  // the mean of all values
    for (std::size_t n = 0; n < kGroupWidth; ++n) {
      double sum = 0;
      for (std::size_t token = 0; token < kGroupTokens; ++token)
        sum += static_cast<double>(v_[layer][token * kGroupWidth + n]);
      EXPECT_NEAR(read[n], sum / kGroupTokens, 3e-4);
    }
  }
}

/// Moments of two layers of 18 tokens each; the second is the first, doubled and without its key's first channel.
TransformMoments related_moments(const std::vector<LayerGroup>& groups, const std::vector<float>& random) {
  constexpr std::size_t kTokens = 20, kWidth = 4;
  std::vector<double> output(kWidth * kWidth);
  for (std::size_t n = 0; n < kWidth; ++n) output[n * (kWidth + 1)] = 1;
  const std::vector<TransformHeads> heads(2, {1, 1, kWidth});
  TransformMoments moments({.layers = {0, 1}, .heads = heads, .sinks = 2, .groups = groups},
                           std::vector<ScoreRule>(2, {.scale = 0.5F}), {output, output});
  MemorySource source(
      1, 1, kTokens, kWidth,
      [&](std::size_t, std::size_t layer, StateKind kind, std::size_t, std::size_t token, std::size_t channel) {
        const float value = random[(static_cast<std::size_t>(kind) * kTokens + token) * kWidth + channel];
        if (layer == 1 && kind == StateKind::kKPre && channel == 0) return random[random.size() - 1 - token];
        return layer == 0 ? value : 2 * value;
      });
  moments.add(source, 0);
  return moments;
}

TEST(TransformGroupBasis, WhatLayersTellOfEachOtherTakesNoCoefficient) {
  const std::vector<float> random = test::random_values(8 * 20 * 4, 5);
  const auto backend = make_backend("cpu", DType::kF32, 1);
  const auto ops = make_calibration_ops(*backend);
  const TransformMoments joint = related_moments({{0, 2}}, random), apart = related_moments({}, random);
  const std::vector<TransformScales> scales(2);
  const TransformBasis basis = transform_basis(*ops, joint, {0, 2}, scales, TransformRows::kLayer);
  ASSERT_EQ(basis.variances.size(), 16U);
  // Nine values are independent: eight of a token, and the second layer's other one. The rest is the thousandth that
  // the covariance's diagonal is increased by.
  const auto sum = [&](std::ptrdiff_t first) {
    return std::accumulate(basis.variances.begin() + first, basis.variances.end(), 0.0);
  };
  EXPECT_LT(sum(9), 2e-3 * sum(0));
  // A layer of a group has the sums that it has alone.
  for (std::size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(joint.outer({layer, 1}), apart.outer({layer, 1}));
    EXPECT_EQ(joint.samples({layer, 1}), apart.samples({layer, 1}));
  }
  const std::vector<float> both = joint.samples({0, 2}), second = joint.samples({1, 1});
  EXPECT_TRUE(std::equal(second.begin(), second.begin() + 8, both.begin() + 8));
}

TEST(TransformGroupGeometry, EndsWhereLayersDiffer) {
  ModelConfig model;
  model.layer.assign(7, {.attention = {.query_heads = 4, .kv_heads = 2, .head_dim = 8}, .feed_forward = {}});
  model.layer[3].attention.window = 16;
  model.layer[4].attention.kv_heads = 1;
  const TransformGeometry geometry = transform_geometry(model, 1, 4, 2);
  std::vector<std::size_t> counts;
  for (const LayerGroup& group : geometry.groups) counts.push_back(group.count);
  EXPECT_EQ(counts, (std::vector<std::size_t>{2, 1, 1, 1, 2}));
}

}  // namespace
}  // namespace kvs
