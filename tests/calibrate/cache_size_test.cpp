// SPDX-License-Identifier: Apache-2.0
// Sizes of caches, and settings that reach a size, against closed forms.
#include "calibrate/common/cache_size.h"

#include <gtest/gtest.h>

#include <numeric>

#include "calibrate/registry.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

constexpr std::size_t kDocument = 200, kModelLayers = 3,
                      kRowBytes = 2 * 2 * 16 * 2;  // K and V of 2 KV heads, 2 bytes a value

const CacheShape& shape() {
  static const CacheShape shape{.layers = std::vector<LayerShape>(kModelLayers, {.kv_heads = 2, .head_dim = 16})};
  return shape;
}

CacheSizes sizes(const char* method, const CacheShape& of = shape()) { return {*find_method(method), of, kDocument}; }

TEST(CacheSize, IsThatOfTheTokensHeld) {
  EXPECT_EQ(sizes("full").total(Json::object()), kModelLayers * kDocument * kRowBytes);
  EXPECT_EQ(sizes("full").full(), kModelLayers * kDocument * kRowBytes);
  EXPECT_EQ(sizes("streaming").total({{"cache_size", 50}}), kModelLayers * 50 * kRowBytes);
  EXPECT_EQ(sizes("freqkv").total({{"cache_size", 50}}), kModelLayers * 50 * kRowBytes);
  // Eight compressions by token 184, which leave a partition in addition to the kept rows; 16 tokens come after them.
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
  CacheShape windowed = shape();
  windowed.layers[1].window = 64;
  EXPECT_EQ(sizes("streaming", windowed).by_layer({{"cache_size", 50}}),
            (std::vector<std::size_t>{50 * kRowBytes, 64 * kRowBytes, 50 * kRowBytes}));
  EXPECT_EQ(sizes("streaming", windowed).full(), (2 * kDocument + 64) * kRowBytes);
}

// TurboQuant leaves the first and the last two layers at 16 bits.
TEST(CacheSize, CountsLayersThatStayAt16Bits) {
  const CacheShape deep{.layers = std::vector<LayerShape>(6, {.kv_heads = 1, .head_dim = 64})};
  constexpr std::size_t kPlain = kDocument * 2 * 64 * 2, kFp8 = kDocument * 2 * 64;
  EXPECT_EQ(sizes("full", deep).by_layer({{"type", "fp8"}, {"type_skip_layers", {0, 4}}}),
            (std::vector<std::size_t>{kPlain, kFp8, kFp8, kFp8, kPlain, kFp8}));
  const std::vector<std::size_t> turbo = sizes("full", deep).by_layer({{"type", "turboquant_4bit_nc"}});
  EXPECT_EQ(turbo[1], kPlain);
  EXPECT_LT(turbo[2], kFp8);
  EXPECT_EQ(turbo[4], kPlain);
}

/// Layers of two sizes, one that stores a row for both sides, one without a cache and one that reads another's rows.
CacheShape mixed_shape() {
  return {.layers = {{.kv_heads = 2, .head_dim = 16},
                     {},
                     {.kv_heads = 1, .head_dim = 64, .one_row = true},
                     {.kv_heads = 2, .head_dim = 16, .window = 64},
                     {.kv_heads = 1, .head_dim = 64, .kv_layer = 2}}};
}

TEST(CacheSize, FollowsTheSizesOfLayersAndCountsRowsOnce) {
  const CacheShape shape = mixed_shape();
  constexpr std::size_t kRow = 64 * 2;  // of layer 2: one row of 64 channels
  EXPECT_EQ(sizes("full", shape).by_layer(Json::object()),
            (std::vector<std::size_t>{kDocument * kRowBytes, 0, kDocument * kRow, 64 * kRowBytes, 0}));
  EXPECT_EQ(sizes("full", shape).full(), kDocument * kRowBytes + kDocument * kRow + 64 * kRowBytes);
  EXPECT_EQ(sizes("streaming", shape).by_layer({{"cache_size", 50}}),
            (std::vector<std::size_t>{50 * kRowBytes, 0, 50 * kRow, 64 * kRowBytes, 0}));
  // Coded keys and values are two rows.
  EXPECT_EQ(sizes("full", shape).by_layer({{"type", "f16"}})[2], 2 * kDocument * kRow);
  EXPECT_EQ(sizes("full", shape).by_layer({{"layers", {0, 3}}, {"type_k", {"f16", "bf16"}}}).size(), 5U);
}

TEST(CacheSize, RefusesSettingsOfLayersWithoutACache) {
  const CacheShape shape = mixed_shape();
  test::expect_error(ErrorCode::kUsage, "layers: found 1, which has no KV cache of its own", [&] {
    (void)sizes("full", shape).total({{"layers", {0, 1}}});
  });
  test::expect_error(ErrorCode::kUsage, "layers: found 4, which has no KV cache of its own", [&] {
    (void)sizes("full", shape).total({{"layers", {4}}});
  });
}

TEST(CacheSize, IsReckonedByNumbersForAllLayers) {
  struct Case {
    const char* method;
    Json settings;
    std::string named;
  };
  const std::vector<Case> cases{{"lagkv", {{"lag", {10, 20, 10}}}, "lag"},
                                {"lagkv", {{"lag", 0}}, "lag"},
                                {"snapkv", {{"prefix", {150, 100, 50}}}, "prefix"},
                                {"faedkv", {{"chunks", "few"}, {"prefix", 150}}, "chunks"},
                                {"faedkv", {{"chunks", -1}, {"prefix", 150}}, "chunks"},
                                {"faedkv", {{"chunks", 1LL << 40}, {"prefix", 150}}, "prefix"}};  // too short for them
  for (const Case& one : cases) try {
      (void)sizes(one.method).fitted(one.settings, 100 * kModelLayers * kRowBytes);
      ADD_FAILURE() << one.method << ' ' << one.settings;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage) << one.settings;
      EXPECT_TRUE(std::string(error.what()).starts_with(one.named + ": found ")) << error.what();
    }
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
      // A token's attention mass takes 2 bytes in addition to its row of a head, 64.
      {"h2o", Json::object(), {{"cache_size", 48}, {"recent", 24}}},
      {"tova", Json::object(), {{"cache_size", 50}}},
      {"snapkv", {{"prefix", 175}, {"window", 8}}, {{"prefix", 175}, {"window", 8}, {"cache_size", 25}}},
      {"lagkv", {{"lag", 10}, {"sinks", 4}}, {{"lag", 10}, {"sinks", 4}, {"ratio", 0.1}}},
  };
  for (const auto& [method, settings, expected] : cases)
    EXPECT_EQ(sizes(method).fitted(settings, kModelLayers * 50 * kRowBytes), expected) << method;
  const auto half = sizes("l2norm").fitted({{"prefix", 100}, {"skip_layers", "none"}}, kModelLayers * 125 * kRowBytes);
  ASSERT_TRUE(half);
  EXPECT_EQ(sizes("l2norm").total(*half), kModelLayers * 125 * kRowBytes);
}

TEST(CacheSize, LeavesChunksThatAreGivenAsTheyAre) {
  // 150 tokens: 4 and 10 stay rows, 136 become 69 bins in 23 chunks; a bin of keys and values takes as much as two
  // rows, and 50 come after the prefix.
  const Json given{{"prefix", 150}, {"sinks", 4}, {"recent", 10}, {"chunks", 23}};
  const auto with = [&](Json settings, const Json& more) {
    settings.update(more);
    return settings;
  };
  const auto fitted = [&](const Json& more, std::size_t rows) {
    return sizes("faedkv").fitted(with(given, more), kModelLayers * (4 + 10 + 50 + rows) * kRowBytes);
  };
  const Json lowest = Json::array({0}), two{0, 1}, four{0, 1, 2, 3}, others{7, 9};
  EXPECT_EQ(fitted(Json::object(), 2 * 2 * 3), with(given, {{"kept", two}, {"kept_v", two}}));
  EXPECT_EQ(fitted({{"kept_v", lowest}}, (4 + 1) * 3), with(given, {{"kept_v", lowest}, {"kept", four}}));
  EXPECT_EQ(fitted({{"kept", lowest}}, (4 + 1) * 3), with(given, {{"kept", lowest}, {"kept_v", four}}));
  const Json both{{"kept", others}, {"kept_v", lowest}};
  EXPECT_EQ(fitted(both, 20 * 3), with(given, both));
  EXPECT_EQ(fitted(both, 2 * 3), std::nullopt);
  std::vector<std::size_t> all(23);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sizes("faedkv").largest(with(given, both)), with(given, {{"kept", all}, {"kept_v", all}}));
  EXPECT_EQ(sizes("faedkv").largest(given), with(given, {{"kept", all}, {"kept_v", all}}));
}

TEST(CacheSize, HasNothingForABudgetThatIsTooSmall) {
  EXPECT_FALSE(sizes("lagkv").fitted({{"lag", 40}}, kModelLayers * 50 * kRowBytes));
  EXPECT_FALSE(sizes("l2norm").fitted({{"prefix", 100}}, kModelLayers * 50 * kRowBytes));
  EXPECT_EQ(sizes("lagkv").least({{"lag", 40}}), kModelLayers * (16 + 2 + 80) * kRowBytes);
  EXPECT_FALSE(sizes("full").fitted(Json::object(), kModelLayers * 50 * kRowBytes));
  const CacheShape wide{
      .layers = std::vector<LayerShape>(kModelLayers, {.kv_heads = 2, .head_dim = 32})};  // a block of q8_0: 34 bytes
  EXPECT_FALSE(sizes("full", wide).fitted({{"type", "q8_0"}}, kModelLayers * kDocument * 4 * 34 - 1));
  EXPECT_TRUE(sizes("full", wide).fitted({{"type", "q8_0"}}, kModelLayers * kDocument * 4 * 34));
}

TEST(CacheSize, RefusesSettingsThatFitNoSize) {
  EXPECT_THROW((void)sizes("streaming").fitted({{"gamma", 1}}, kModelLayers * 50 * kRowBytes), Error);
}

TEST(CacheSize, GivesMoreBytesForMoreShare) {
  for (const Method* method : all_methods()) {
    if (method->settings_for_share == nullptr || method->needs_files) continue;
    CacheSizes of(*method, shape(), kDocument);
    Json common = Json::object();
    if (method->name == "lagkv") common["lag"] = 16;
    if (method->prefill == Prefill::kWhole) common["prefix"] = 150;
    std::vector<Json> ways{common};
    if (method->name == "faedkv")
      for (const char* const given : {"kept", "kept_v"}) ways.emplace_back(common)[given] = Json::array({0});
    for (const Json& settings : ways) {
      std::size_t before = 0, found = 0;
      for (std::size_t part = 1; part <= 8; ++part) {
        const std::size_t bytes = part * of.full() / 8;
        const auto fitted = of.fitted(settings, bytes);
        if (!fitted) continue;
        ++found;
        EXPECT_LE(of.total(*fitted), bytes) << method->name << settings;
        EXPECT_GE(of.total(*fitted), before) << method->name << settings;
        before = of.total(*fitted);
      }
      EXPECT_GE(found, 2U) << method->name << settings;
    }
  }
}

}  // namespace
}  // namespace kvs
