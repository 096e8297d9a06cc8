// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/calibrate/layer_harness.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

TEST(GqaCache, QueriesReadTheMeanOfTheirNeighboursKeysAndValues) {
  // Heads 0 and 1 become one, 2 and 3 another. Two tokens; queries of (1, 0), so a score is a mean key's first channel.
  const std::vector<float> k{1, 9, 2, 9, 3, 9, 8, 9, -1, 9, 0, 9, 5, 9, 6, 9},
      v{1, 0, 10, 2, 3, 0, 20, 4, 0, 6, 4, 0, 2, 8, 8, 0};
  const auto cache = test::layer_cache("gqa", {"heads=2"});
  test::LayerHarness layer(*cache, 4, 2);
  EXPECT_EQ(layer.feed(k, v, 2, 0, 1), (std::vector<float>{2, 0, 2, 0, 1, 7, 1, 7}));
  const std::vector<float> found = layer.feed(k, v, 2, 1, 1);
  const auto read = [](double step, double first, double second) {  // of keys that differ by `step`
    return (first + second * std::exp(step)) / (1 + std::exp(step));
  };
  const double low = 5 - 2, high = 3 - 2;
  const std::vector<double> expected{read(low, 2, 15), read(low, 0, 3), read(high, 1, 6), read(high, 7, 0)};
  for (std::size_t n = 0; n < found.size(); ++n) EXPECT_NEAR(found[n], expected[n / 4 * 2 + n % 2], 1e-5) << n;
  EXPECT_EQ(cache->bytes().stored, 2 * 2 * 2 * 2 * 2);  // tokens, heads, key and value, channels, bytes
  EXPECT_EQ(cache->bytes().used, 2 * 2 * 2 * 2 * sizeof(float));
}

TEST(GqaCache, PoolingHeadsThatAreEqualChangesNothing) {
  constexpr std::size_t kHeads = 6, kTokens = 40, kChannels = 8;
  const auto repeated = [](std::uint32_t seed) {
    std::vector<float> states;
    for (const std::uint32_t pair : {seed, seed + 1}) {
      const auto head = test::random_values(kTokens * kChannels, pair);
      for (int n = 0; n < 3; ++n) states.insert(states.end(), head.begin(), head.end());
    }
    return states;
  };
  const std::vector<float> k = repeated(1), v = repeated(3);
  const auto pooled = test::layer_cache("gqa", {"heads=2"}), full = test::layer_cache("full", {});
  test::LayerHarness few(*pooled, kHeads, kChannels), all(*full, kHeads, kChannels);
  for (std::size_t token = 0; token < kTokens; token += 8) {
    const std::vector<float> expected = all.feed(k, v, kTokens, token, 3, 8),
                             found = few.feed(k, v, kTokens, token, 3, 8);
    for (std::size_t n = 0; n < expected.size(); ++n) ASSERT_NEAR(found[n], expected[n], 1e-6) << token;
  }
  EXPECT_EQ(3 * pooled->bytes().stored, full->bytes().stored);
}

TEST(GqaCache, RefusesHeadsThatDoNotDivideAndScalesOfHeadsThatAreNoMore) {
  const auto make = [](const std::vector<std::string>& settings) {
    Parameters parameters({{parse_settings(settings, "settings"), "--set ", ErrorCode::kUsage}}, 2);
    return make_cache(*find_method("gqa"), parameters,
                      {.layers = std::vector<LayerShape>(2, {.kv_heads = 6, .head_dim = 8})});
  };
  test::expect_error(ErrorCode::kUsage, "--set heads: found 4, expected a divisor of the model's 6 KV heads",
                     [&] { make({"heads=4"}); });
  test::expect_error(ErrorCode::kUsage, "--set scale_v: found another for each KV head, expected one", [&] {
    make({"heads=2", "type=fp8", "scale_v=1,1,2,1,1,1/1,1,1,1,1,1"});
  });
  EXPECT_NO_THROW(make({"heads=2", "type=fp8", "scale_k=0.5"}));
}

}  // namespace
}  // namespace kvs
