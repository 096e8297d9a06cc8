// Sizes of caches and settings that reach one, against closed forms.
#include "policy/cache_size.h"

#include <gtest/gtest.h>

#include <numeric>

#include "policy/methods.h"

namespace kvs {
namespace {

constexpr std::size_t kDocument = 200, kModelLayers = 3,
                      kRowBytes = 2 * 2 * 16 * 2;  // K and V of 2 KV heads, 2 bytes a value

const CacheShape& shape() {
  static const CacheShape shape{.kv_heads = 2, .head_dim = 16};
  return shape;
}

CacheSizes sizes(const char* method, const CacheShape& of = shape()) {
  return {*find_cache_method(method), of, kModelLayers, kDocument};
}

TEST(CacheSize, IsThatOfTheTokensHeld) {
  EXPECT_EQ(sizes("full").total(Json::object()), kModelLayers * kDocument * kRowBytes);
  EXPECT_EQ(sizes("full").full(), kModelLayers * kDocument * kRowBytes);
  EXPECT_EQ(sizes("streaming").total({{"cache_size", 50}}), kModelLayers * 50 * kRowBytes);
  EXPECT_EQ(sizes("freqkv").total({{"cache_size", 50}}), kModelLayers * 50 * kRowBytes);
  // Eight compressions by token 184, which leave a partition beside what they kept; 16 tokens come after them.
  EXPECT_EQ(sizes("lagkv").total({{"lag", 20}, {"sinks", 4}, {"ratio", 0.25}}),
            kModelLayers * (4 + 8 * 5 + 20 + 16) * kRowBytes);
  EXPECT_EQ(sizes("snapkv").total({{"prefix", 150}, {"cache_size", 40}, {"window", 10}}),
            kModelLayers * (40 + 50) * kRowBytes);
}

TEST(CacheSize, CountsLayersByThemselves) {
  EXPECT_EQ(sizes("streaming").by_layer({{"cache_size", {10, 20, 30}}}),
            (std::vector<std::size_t>{10 * kRowBytes, 20 * kRowBytes, 30 * kRowBytes}));
  EXPECT_EQ(sizes("l2norm").by_layer({{"prefix", 100}, {"ratio", 0.5}}),
            (std::vector<std::size_t>{kDocument * kRowBytes, kDocument * kRowBytes, 150 * kRowBytes}));
  const CacheShape windowed{.kv_heads = 2, .head_dim = 16, .windows = {0, 64, 0}};
  EXPECT_EQ(sizes("streaming", windowed).by_layer({{"cache_size", 50}}),
            (std::vector<std::size_t>{50 * kRowBytes, 64 * kRowBytes, 50 * kRowBytes}));
  EXPECT_EQ(sizes("streaming", windowed).full(), (2 * kDocument + 64) * kRowBytes);
}

TEST(CacheSize, FitsTheGreatestThatABudgetHolds) {
  struct Case {
    const char* method;
    Json settings, expected;
  };
  const std::vector<Case> cases{
      {"streaming", Json::object(), {{"cache_size", 50}}},
      {"dropping", Json::object(), {{"cache_size", 50}}},
      {"freqkv", {{"gamma", 0.25}}, {{"gamma", 0.25}, {"cache_size", 50}}},
      // A token's attention mass takes 2 bytes beside its row of a head, 64.
      {"h2o", Json::object(), {{"cache_size", 48}, {"recent", 24}}},
      {"snapkv", {{"prefix", 175}, {"window", 8}}, {{"prefix", 175}, {"window", 8}, {"cache_size", 25}}},
      {"lagkv", {{"lag", 10}, {"sinks", 4}}, {{"lag", 10}, {"sinks", 4}, {"ratio", 0.1}}},
  };
  for (const auto& [method, settings, expected] : cases)
    EXPECT_EQ(sizes(method).fitted(settings, kModelLayers * 50 * kRowBytes), expected) << method;
  const auto half = sizes("l2norm").fitted({{"prefix", 100}, {"skip_layers", "none"}}, kModelLayers * 125 * kRowBytes);
  ASSERT_TRUE(half);
  EXPECT_EQ(sizes("l2norm").total(*half), kModelLayers * 125 * kRowBytes);
}

TEST(CacheSize, HasNothingForABudgetThatIsTooSmall) {
  EXPECT_FALSE(sizes("lagkv").fitted({{"lag", 40}}, kModelLayers * 50 * kRowBytes));
  EXPECT_FALSE(sizes("l2norm").fitted({{"prefix", 100}}, kModelLayers * 50 * kRowBytes));
  EXPECT_EQ(sizes("lagkv").least({{"lag", 40}}), kModelLayers * (16 + 2 + 80) * kRowBytes);
  EXPECT_FALSE(sizes("full").fitted(Json::object(), kModelLayers * 50 * kRowBytes));
  const CacheShape wide{.kv_heads = 2, .head_dim = 32};  // a block of q8_0: 34 bytes
  EXPECT_FALSE(sizes("full", wide).fitted({{"store", "q8_0"}}, kModelLayers * kDocument * 4 * 34 - 1));
  EXPECT_TRUE(sizes("full", wide).fitted({{"store", "q8_0"}}, kModelLayers * kDocument * 4 * 34));
}

TEST(CacheSize, RefusesSettingsThatFitNoSize) {
  EXPECT_THROW((void)sizes("streaming").fitted({{"gamma", 1}}, kModelLayers * 50 * kRowBytes), Error);
}

TEST(CacheSize, GivesMoreBytesForMoreShare) {
  for (const CacheMethod* method : cache_methods()) {
    if (method->sized == nullptr) continue;
    CacheSizes of(*method, shape(), kModelLayers, kDocument);
    Json settings = Json::object();
    if (method->name == "lagkv") settings["lag"] = 16;
    if (method->prefill == Prefill::kWhole) settings["prefix"] = 150;
    std::size_t before = 0, found = 0;
    for (std::size_t part = 1; part <= 8; ++part) {
      const std::size_t bytes = part * of.full() / 8;
      const auto fitted = of.fitted(settings, bytes);
      if (!fitted) continue;
      ++found;
      EXPECT_LE(of.total(*fitted), bytes) << method->name;
      EXPECT_GE(of.total(*fitted), before) << method->name;
      before = of.total(*fitted);
    }
    EXPECT_GE(found, 2U) << method->name;
  }
}

}  // namespace
}  // namespace kvs
