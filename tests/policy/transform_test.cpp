#include "policy/transform.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/full.h"
#include "tests/policy/layer_harness.h"

namespace kvs {
namespace {

constexpr std::size_t kCoderHeads = 2, kCoderWidth = 8, kCoderValues = 2 * kCoderHeads * kCoderWidth, kCoderTokens = 40;

/// Coefficients are the values themselves, each in the reverse place and less 0.5; 4 bits each.
TransformLayer reversing_layer(float threshold, double outliers) {
  TransformLayer layer{.layer = 0,
                       .mean = std::vector<float>(kCoderValues, 0.5F),
                       .analysis = std::vector<float>(kCoderValues * kCoderValues),
                       .synthesis = std::vector<float>(kCoderValues * kCoderValues),
                       .bits = std::vector<std::size_t>(kCoderValues, 4),
                       .weights = std::vector<float>(kCoderValues, 1),
                       .threshold = threshold,
                       .outliers = outliers,
                       .books = test::random_values(kTrellisBooks, 9),
                       .sinks = 3};
  for (std::size_t n = 0; n < kCoderValues; ++n) {
    layer.analysis[n * kCoderValues + kCoderValues - 1 - n] = 2;
    layer.synthesis[n * kCoderValues + kCoderValues - 1 - n] = 0.5F;
  }
  for (float& entry : layer.books) entry *= 3;
  return layer;
}

class TransformCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<LayerCache> cache(float threshold, double outliers = 1) {
    return make_transform_cache(make_transform_products(test::LayerHarness(*full_, kCoderHeads, kCoderWidth).backend(),
                                                        reversing_layer(threshold, outliers),
                                                        {kCoderHeads, kCoderWidth}));
  }
  /// What a token after the text reads of it: bits, not values, tell caches apart.
  std::vector<float> probe(LayerCache& cache) {
    return test::LayerHarness(cache, kCoderHeads, kCoderWidth).feed(k_, v_, kCoderTokens, kCoderTokens - 1, 0.7F);
  }
  void feed(LayerCache& cache, std::size_t group) {
    test::LayerHarness harness(cache, kCoderHeads, kCoderWidth);
    for (std::size_t token = 0; token + 1 < kCoderTokens; token += group)
      harness.feed(k_, v_, kCoderTokens, token, 0, std::min(group, kCoderTokens - 1 - token));
  }
  std::size_t stored(std::size_t tokens, std::size_t outliers) const {
    return (tokens - 3) * (2 + kCoderValues / 2) + 3 * 2 * kCoderValues + outliers * (2 * kCoderValues + 4);
  }

  std::unique_ptr<LayerCache> full_ = make_full_cache();
  std::vector<float> k_ = test::random_values(kCoderHeads * kCoderTokens * kCoderWidth, 1),
                     v_ = test::random_values(kCoderHeads * kCoderTokens * kCoderWidth, 2);
};

TEST_F(TransformCacheTest, HoldsTheSameAtOnceAndTokenByToken) {
  for (const float threshold : {100.0F, 0.6F}) {
    const auto whole = cache(threshold), single = cache(threshold), groups = cache(threshold);
    feed(*whole, kCoderTokens);
    feed(*single, 1);
    feed(*groups, 7);
    EXPECT_EQ(whole->bytes().stored, single->bytes().stored);
    const std::vector<float> read = probe(*whole);
    EXPECT_EQ(read, probe(*single));
    EXPECT_EQ(read, probe(*groups));
  }
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
