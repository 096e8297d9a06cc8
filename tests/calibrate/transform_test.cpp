// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "caches/full.h"
#include "calibrate/transform/cache.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/calibrate/layer_harness.h"

namespace kvs {
namespace {

constexpr std::size_t kCoderHeads = 2, kCoderWidth = 8, kCoderValues = 2 * kCoderHeads * kCoderWidth, kCoderTokens = 40;
constexpr float kCoderAngle = 0.3F;

/// Coefficients are the values themselves, in reverse order and minus 0.5; 4 bits each.
TransformLayer reversing_layer(float threshold, double outliers, std::size_t recent) {
  TransformLayer layer{.layer = 0,
                       .mean = std::vector<float>(kCoderValues, 0.5F),
                       .analysis = std::vector<float>(kCoderValues * kCoderValues),
                       .synthesis = std::vector<float>(kCoderValues * kCoderValues),
                       .bits = std::vector<std::size_t>(kCoderValues, 4),
                       .weights = std::vector<float>(kCoderValues, 1),
                       .threshold = threshold,
                       .outliers = outliers,
                       .books = test::random_values(kTrellisBooks, 9),
                       .sinks = 3,
                       .recent = recent};
  for (std::size_t n = 0; n < kCoderValues; ++n) {
    layer.analysis[n * kCoderValues + kCoderValues - 1 - n] = 2;
    layer.synthesis[n * kCoderValues + kCoderValues - 1 - n] = 0.5F;
  }
  for (float& entry : layer.books) entry *= 3;
  return layer;
}

/// Like the config above, with rows by head: keys are their own coefficients.
TransformLayer reversing_heads(std::size_t recent) {
  TransformLayer layer = reversing_layer(0, 0, recent);
  layer.rows = TransformRows::kHead;
  layer.deviations.assign(kCoderHeads * kCoderWidth, 0.5F);
  layer.analysis.assign(kCoderHeads * kCoderWidth * kCoderWidth, 0);
  layer.synthesis = layer.analysis;
  for (std::size_t head = 0; head < kCoderHeads; ++head)
    for (std::size_t n = 0; n < kCoderWidth; ++n) {
      const std::size_t at = (head * kCoderWidth + n) * kCoderWidth + kCoderWidth - 1 - n;
      layer.analysis[at] = 2;
      layer.synthesis[at] = 0.5F;
    }
  return layer;
}

class TransformCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<LayerCache> cache(float threshold, double outliers = 1, std::size_t recent = 0) {
    return cache(reversing_layer(threshold, outliers, recent));
  }
  std::unique_ptr<LayerCache> cache(const TransformLayer& layer) {
    return make_transform_cache(make_transform_products(test::LayerHarness(*full_, kCoderHeads, kCoderWidth).backend(),
                                                        layer, {kCoderHeads, kCoderWidth}));
  }
  /// The results that a token after the text reads; their bits, not their values, distinguish caches.
  std::vector<float> probe(LayerCache& cache, std::size_t window = 0) {
    return test::LayerHarness(cache, kCoderHeads, kCoderWidth, window, kCoderAngle)
        .feed(k_, v_, kCoderTokens, kCoderTokens - 1, 0.7F);
  }
  void feed(LayerCache& cache, std::size_t group, std::size_t window = 0) {
    test::LayerHarness harness(cache, kCoderHeads, kCoderWidth, window, kCoderAngle);
    for (std::size_t token = 0; token + 1 < kCoderTokens; token += group)
      harness.feed(k_, v_, kCoderTokens, token, 0, std::min(group, kCoderTokens - 1 - token));
  }
  /// A text at once, token by token and in groups.
  void expect_the_same(const TransformLayer& layer, std::size_t window) {
    const auto whole = cache(layer), single = cache(layer), groups = cache(layer);
    feed(*whole, kCoderTokens, window);
    feed(*single, 1, window);
    feed(*groups, 7, window);
    EXPECT_EQ(whole->bytes().stored, single->bytes().stored);
    const std::vector<float> read = probe(*whole, window);
    EXPECT_EQ(read, probe(*single, window));
    EXPECT_EQ(read, probe(*groups, window));
  }
  std::size_t stored(std::size_t tokens, std::size_t outliers) const {
    return (tokens - 3) * (2 + kCoderValues / 2) + 3 * 2 * kCoderValues + outliers * (2 * kCoderValues + 4);
  }

  std::unique_ptr<LayerCache> full_ = make_full_cache();
  std::vector<float> k_ = test::random_values(kCoderHeads * kCoderTokens * kCoderWidth, 1),
                     v_ = test::random_values(kCoderHeads * kCoderTokens * kCoderWidth, 2);
};

TEST_F(TransformCacheTest, HoldsTheSameAtOnceAndTokenByToken) {
  for (const float threshold : {100.0F, 0.6F})
    for (const std::size_t recent : {0, 5})
      for (const std::size_t window : {0, 12}) {
        SCOPED_TRACE(::testing::Message() << threshold << ", " << recent << " recent, window " << window);
        expect_the_same(reversing_layer(threshold, 0.2, recent), window);
      }
}

/// Attention reads rows in one form alone, as on a GPU.
class UnsettledBackend final : public CpuBackend {
 public:
  using CpuBackend::CpuBackend;
  bool attends_settling() const override { return false; }
};

TEST_F(TransformCacheTest, EveryTokenOfALongCallReadsWhatItReadsInShortCalls) {
  constexpr std::size_t kAll = 700, kStep = 23, kWide = kCoderHeads * kCoderWidth;
  UnsettledBackend unsettled(DType::kF32, 1);
  const std::vector<float> k = test::random_values(kAll * kWide, 3), v = test::random_values(kAll * kWide, 4);
  for (const bool by_head : {false, true}) {
    for (const std::size_t recent : {8, 100, 300}) {
      SCOPED_TRACE(::testing::Message() << recent << " recent, by head " << by_head);
      const TransformLayer layer = by_head ? reversing_heads(recent) : reversing_layer(0.6F, 0.2, recent);
      const auto whole = cache(layer), groups = cache(layer), other = cache(layer);
      test::LayerHarness at_once(*whole, kCoderHeads, kCoderWidth, 0, kCoderAngle),
          stepwise(*groups, kCoderHeads, kCoderWidth, 0, kCoderAngle),
          in_one_form(*other, kCoderHeads, kCoderWidth, 0, kCoderAngle);
      in_one_form.use(unsettled);
      const std::vector<float> read = at_once.feed(k, v, kAll, 0, 0.7F, kAll),
                               others = in_one_form.feed(k, v, kAll, 0, 0.7F, kAll);
      for (std::size_t n = 0; n < read.size(); ++n) ASSERT_NEAR(read[n], others[n], 1e-5) << n;
      std::size_t peak = 0;
      for (std::size_t first = 0; first < kAll; first += kStep) {
        const std::size_t count = std::min(kStep, kAll - first);
        const std::vector<float> some = stepwise.feed(k, v, kAll, first, 0.7F, count);
        for (std::size_t n = 0; n < some.size(); ++n) ASSERT_NEAR(read[first * kWide + n], some[n], 1e-5) << first;
        peak = std::max(peak, groups->peak().stored);
      }
      EXPECT_EQ(whole->peak().stored, peak);
      EXPECT_EQ(whole->bytes().stored, groups->bytes().stored);
    }
  }
}

TEST_F(TransformCacheTest, HoldsTheSameByHead) {
  for (const std::size_t recent : {0, 5})
    for (const std::size_t window : {0, 12}) {
      SCOPED_TRACE(::testing::Message() << recent << " recent, window " << window);
      expect_the_same(reversing_heads(recent), window);
    }
}

TEST_F(TransformCacheTest, CodesAreReadWhereTheyLieAsWhatTheyStandFor) {
  constexpr std::size_t kAllInWindow = 1000;  // a layer with a window gets its states back
  const auto codes = cache(reversing_heads(5)), states = cache(reversing_heads(5));
  feed(*codes, kCoderTokens);
  feed(*states, kCoderTokens, kAllInWindow);
  const std::vector<float> read = probe(*codes), expected = probe(*states, kAllInWindow);
  for (std::size_t n = 0; n < read.size(); ++n) EXPECT_NEAR(read[n], expected[n], 1e-5);
}

TEST_F(TransformCacheTest, CountsGainsOfHeads) {
  const auto coded = cache(reversing_heads(0));
  feed(*coded, kCoderTokens);
  EXPECT_EQ(coded->bytes().stored,
            3 * 2 * kCoderValues + (kCoderTokens - 1 - 3) * (kCoderValues / 2 + 2 * 2 * kCoderHeads));
}

TEST_F(TransformCacheTest, TokensWaitUntilTwiceAsManyAreThere) {
  constexpr std::size_t kRecent = 5, kSinks = 3, kRow = 2 * 2 * kCoderHeads * kCoderWidth, kCode = 2 + kCoderValues / 2;
  const auto waits = cache(1e9F, 1, kRecent);
  test::LayerHarness harness(*waits, kCoderHeads, kCoderWidth);
  for (std::size_t token = 0; token + 1 < kCoderTokens; ++token) {
    harness.feed(k_, v_, kCoderTokens, token);
    const std::size_t after = token + 1 - std::min<std::size_t>(token + 1, kSinks),
                      coded = after < kRecent ? 0 : (after - kRecent) / kRecent * kRecent;
    EXPECT_EQ(waits->bytes().stored, (token + 1 - coded) * kRow + coded * kCode);
    const bool codes = after >= 2 * kRecent && after % kRecent == 0;  // at the end of this token
    EXPECT_EQ(waits->peak().stored, waits->bytes().stored + (codes ? kRecent * (kRow - kCode) : 0));
  }
}

TEST_F(TransformCacheTest, NothingIsLostOfTokensThatWait) {
  const auto waits = cache(1e9F, 1, kCoderTokens), full = make_full_cache();
  feed(*waits, 7);
  feed(*full, 7);
  const std::vector<float> read = probe(*waits), expected = probe(*full);
  for (std::size_t n = 0; n < read.size(); ++n) EXPECT_NEAR(read[n], expected[n], 2e-3);  // of f16
}

TEST_F(TransformCacheTest, HoldsAWindowWhereTheLayerHasOne) {
  constexpr std::size_t kWindow = 12;
  const auto coded = cache(1e9F);
  feed(*coded, 7, kWindow);
  EXPECT_EQ(coded->bytes().stored, kWindow * (2 + kCoderValues / 2));  // the sinks are gone, too
  const auto exact = cache(-1);                                        // every token is an outlier, in f16
  feed(*exact, 7, kWindow);
  EXPECT_EQ(exact->bytes().stored, kWindow * (2 + kCoderValues / 2 + 2 * kCoderValues + 4));
  const auto full = make_full_cache();
  feed(*full, 7, kWindow);
  const std::vector<float> read = probe(*exact, kWindow), expected = probe(*full, kWindow);
  for (std::size_t n = 0; n < read.size(); ++n) EXPECT_NEAR(read[n], expected[n], 2e-3);  // of f16
}

TEST_F(TransformCacheTest, CountsCodesSinksAndOutliers) {
  const auto coded = cache(1e9F), full = cache(-1);
  feed(*coded, kCoderTokens);
  feed(*full, kCoderTokens);
  EXPECT_EQ(coded->bytes().stored, stored(kCoderTokens - 1, 0));
  EXPECT_EQ(full->bytes().stored, stored(kCoderTokens - 1, kCoderTokens - 1 - 3));
}

TEST_F(TransformCacheTest, MoreOutliersThanTheirShareRaiseTheThreshold) {
  const auto free = cache(0.1F), held = cache(0.1F, 0.1);
  feed(*free, kCoderTokens);
  feed(*held, kCoderTokens);
  EXPECT_EQ(free->bytes().stored, stored(kCoderTokens - 1, kCoderTokens - 1 - 3));
  EXPECT_GE(held->bytes().stored, stored(kCoderTokens - 1, 3));
  EXPECT_LE(held->bytes().stored, stored(kCoderTokens - 1, 3 + kMoreOutliers));
}

TEST_F(TransformCacheTest, ATokenThatCostsMoreThanTheThresholdStaysInFull) {
  const auto nothing_coded = cache(-1);
  feed(*nothing_coded, kCoderTokens);
  // Queries of zeros: the mean of all values.
  const std::vector<float> read =
      test::LayerHarness(*nothing_coded, kCoderHeads, kCoderWidth).feed(k_, v_, kCoderTokens, kCoderTokens - 1);
  for (std::size_t head = 0; head < kCoderHeads; ++head)
    for (std::size_t n = 0; n < kCoderWidth; ++n) {
      double sum = 0;
      for (std::size_t token = 0; token < kCoderTokens; ++token)
        sum += static_cast<double>(v_[(head * kCoderTokens + token) * kCoderWidth + n]);
      EXPECT_NEAR(read[head * kCoderWidth + n], sum / kCoderTokens, 3e-4);  // in f16
    }
}

TEST_F(TransformCacheTest, ReadsCodesCloseToTheStates) {
  const auto coded = cache(1e9F);
  feed(*coded, kCoderTokens);
  const std::vector<float> read =
      test::LayerHarness(*coded, kCoderHeads, kCoderWidth).feed(k_, v_, kCoderTokens, kCoderTokens - 1);
  for (std::size_t head = 0; head < kCoderHeads; ++head) {
    double sum = 0;
    for (std::size_t token = 0; token < kCoderTokens; ++token)
      sum += static_cast<double>(v_[(head * kCoderTokens + token) * kCoderWidth]);
    const double error = std::abs(static_cast<double>(read[head * kCoderWidth]) - sum / kCoderTokens);
    EXPECT_LT(error, 0.05);  // of 40 independent errors of about 0.1
    EXPECT_GT(error, 1e-6);
  }
}

}  // namespace
}  // namespace kvs
