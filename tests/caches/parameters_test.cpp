// SPDX-License-Identifier: Apache-2.0
#include "caches/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "calibrate/registry.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

CacheShape layers_of(const Parameters& parameters, std::size_t kv_heads) {
  return {.layers = std::vector<LayerShape>(parameters.layers(), {.kv_heads = kv_heads, .head_dim = 64})};
}

Cache make(const std::string& method, const std::vector<std::string>& settings,
           const std::vector<std::size_t>& windows = {0, 0, 0}) {
  CacheShape shape;
  for (const std::size_t window : windows) shape.layers.push_back({.kv_heads = 1, .head_dim = 64, .window = window});
  Parameters parameters({{parse_settings(settings, "--set"), "--set ", ErrorCode::kUsage}}, shape);
  return make_cache(*find_method(method), parameters, shape);
}

TEST(ParseSettings, ReadsNumbersWordsAndLists) {
  EXPECT_EQ(parse_settings(std::vector<std::string>{"a=4", "b=0.5", "c=on", "d=1,2.5,x"}, "--set"),
            Json({{"a", 4}, {"b", 0.5}, {"c", "on"}, {"d", {1, 2.5, "x"}}}));
  EXPECT_EQ(parse_settings(std::vector<std::string>{"a=2-4", "b=9,0-2", "c=0,3/4-5/1", "d=-3", "e=3-x"}, "--set"),
            Json({{"a", {2, 3, 4}}, {"b", {9, 0, 1, 2}}, {"c", {{0, 3}, {4, 5}, {1}}}, {"d", -3}, {"e", "3-x"}}));
  for (const char* bad : {"a", "=4", "a="})
    expect_error(ErrorCode::kUsage, "expected NAME=VALUE",
                 [&] { parse_settings(std::vector<std::string>{bad}, "--set"); });
  expect_error(ErrorCode::kUsage, "'a' twice", [] { parse_settings(std::vector<std::string>{"a=1", "a=2"}, "--set"); });
}

TEST(MakeCache, RefusesWhatNoMethodCanWorkWith) {
  const auto refuse = [](const std::string& method, const std::vector<std::string>& settings, std::string_view part) {
    expect_error(ErrorCode::kUsage, part, [&] { make(method, settings); });
  };
  refuse("full", {"cache_size=4"}, "--set cache_size: found a parameter that the method does not have");
  refuse("freqkv", {}, "--set cache_size: found nothing, expected a whole number of at least 6");
  refuse("freqkv", {"cache_size=5"}, "found 5, expected a whole number of at least 6");
  refuse("freqkv", {"cache_size=64.5"}, "found 64.5, expected a whole number");
  refuse("freqkv", {"cache_size=64", "gamma=1.5"}, "expected a number from 0.0 to 1.0");
  refuse("freqkv", {"cache_size=64", "gamma=nan"}, "expected a number from 0.0 to 1.0");
  refuse("freqkv", {"cache_size=64", "gamma=0.01"}, "keeps 0 of 60 slots");
  refuse("dropping", {"cache_size=64", "gamma=1"}, "keeps 60 of 60 slots");
  refuse("freqkv", {"cache_size=64", "band=middle"}, "expected one of low, high");
  refuse("freqkv", {"cache_size=64", "rescale=yes"}, "expected one of on, off");
  refuse("freqkv", {"cache_size=64,64"}, "found a list of 2, expected a value for each of 3 layers");
  refuse("lagkv", {"lag=0"}, "expected a whole number of at least 1");
  refuse("l2norm", {"ratio=0.5"}, "--set prefix: found nothing, expected a whole number of at least 1");
  refuse("l2norm", {"prefix=8", "prefill=stepwise"}, "expected whole");
  refuse("l2norm", {"prefix=8", "skip_layers=0,3"}, "expected numbers below 3, or none");
  refuse("faedkv", {"kept=0"}, "--set prefix: found nothing");
  refuse("faedkv", {"prefix=60", "chunks=1"}, "--set prefix: found 60, expected a whole number of at least 61");
  refuse("faedkv", {"prefix=101"}, "found 101, expected a whole number of at least 102");  // 21 bins for 22 chunks
  for (const char* kept : {"22", "4-22", "5-4", "1-2-3", "0,x", "-1", "0-", "0-99999999999"})
    refuse("faedkv", {"prefix=800", std::string("kept=") + kept}, "expected numbers below 22, or none");
  refuse("faedkv", {"prefix=800", "kept=none"}, "--set kept: found no chunk that is kept");
  refuse("faedkv", {"prefix=800", "kept_v=22"}, "--set kept_v: found 22, expected numbers below 22, or none");
  refuse("faedkv", {"prefix=800", "kept_v=none"}, "--set kept_v: found no chunk that is kept");
  refuse("faedkv", {"prefix=800", "kept=none", "kept_v=0"}, "--set kept: found no chunk that is kept");
  refuse("faedkv", {"prefix=800", "kept=0/1"}, "--set kept: found a list of 2, expected a value for each of 3 layers");
  refuse("faedkv", {"prefix=800", "age=on", "update=literal", "key_space=k_pre"}, "expected k_post");
  refuse("faedkv", {"prefix=800", "prefill=stepwise"}, "expected whole");
  refuse("freqkv", {"cache_size=64", "prefix=8", "prefill=whole"}, "expected stepwise");
  refuse("lagkv", {"prefill=whole"}, "--set prefix: found 0");
  refuse("streaming", {"cache_size=4"}, "expected a whole number of at least 5");
  refuse("streaming", {"cache_size=1", "sinks=0"}, "expected a whole number of at least 2");
  refuse("h2o", {"cache_size=8", "recent=8"}, "--set cache_size: found 8, expected a whole number of at least 9");
  refuse("h2o", {"cache_size=8"}, "--set recent: found nothing, expected a whole number of at least 1");
  refuse("snapkv", {"cache_size=80"}, "--set prefix: found nothing, expected a whole number of at least 64");
  refuse("snapkv", {"prefix=64", "cache_size=64"}, "found 64, expected a whole number of at least 65");
  refuse("snapkv", {"prefix=64", "cache_size=80", "kernel=4"}, "--set kernel: found 4, expected an odd number");
  refuse("snapkv", {"prefix=64", "cache_size=80", "kernel=0"}, "expected a whole number of at least 1");
}

TEST(MakeCache, TakesAValueForEachLayer) {
  EXPECT_EQ(make("freqkv", {"cache_size=64,80,100", "gamma=0.5,0.25,0.75"}).max_tokens_per_call(), 64U);
  EXPECT_EQ(make("lagkv", {"lag=16,8,32", "sinks=4"}).max_tokens_per_call(), 20U);  // S + 2L of the second
}

TEST(MakeCache, ListsHaveAValueForEachNamedLayer) {
  EXPECT_EQ(make("freqkv", {"layers=1,2", "cache_size=80,64"}).max_tokens_per_call(), 64U);
  EXPECT_EQ(make("freqkv", {"layers=1", "cache_size=64"}).layer(0).max_tokens_per_call(), LayerCache::kUnlimited);
  expect_error(ErrorCode::kUsage, "--set layers: found [2,1], expected some layers, ascending", [] {
    make("freqkv", {"layers=2,1", "cache_size=64"});
  });
  expect_error(ErrorCode::kUsage, "expected a value for each of 2 layers", [] {
    make("freqkv", {"layers=1,2", "cache_size=64,64,64"});
  });
  expect_error(ErrorCode::kUsage, "--set prefix: found a list, expected one value for all layers",
               [] { make("lagkv", {"prefix=1,2,3"}); });
}

TEST(Parameters, ALaterSourceOverridesAndIsNamed) {
  const Json config{{"cache_size", 64}, {"gamma", 0.25}}, set{{"cache_size", 5}};
  const auto make_of = [](std::vector<ParameterSource> sources) {
    Parameters parameters(std::move(sources), 2);
    Cache cache = make_cache(*find_method("dropping"), parameters, layers_of(parameters, 1));
    return std::pair(cache.max_tokens_per_call(), parameters.resolved());
  };
  const ParameterSource file{config, "c.json: /parameters/", ErrorCode::kInput};
  EXPECT_EQ(make_of({file, {{{"cache_size", 80}}, "--set ", ErrorCode::kUsage}}).first, 80U);
  expect_error(ErrorCode::kUsage, "--set cache_size: found 5", [&] {
    make_of({file, {set, "--set ", ErrorCode::kUsage}});
  });
  expect_error(ErrorCode::kInput, "c.json: /parameters/cache_size: found nothing", [&] {
    make_of({{Json::object(), file.where, file.code}, {{{"gamma", 0.5}}, "--set ", ErrorCode::kUsage}});
  });
}

TEST(Parameters, AreCompleteOnceTheyAreRead) {
  const auto resolved = [](const std::string& method, const std::vector<std::string>& settings) {
    Parameters parameters({{parse_settings(settings, "settings"), "", ErrorCode::kUsage}}, 3);
    (void)make_cache(*find_method(method), parameters, layers_of(parameters, 1));
    return parameters.resolved();
  };
  EXPECT_EQ(resolved("lagkv", {"lag=8,8,16"}),
            Json::parse(R"({"layers": [0, 1, 2], "type": "none", "type_k": "type", "type_v": "type", "rotate": "on",
      "layout": "engine", "scale_k": 1.0, "scale_v": 1.0, "type_skip_layers": [], "sinks": 16, "lag": [8, 8, 16],
      "ratio": 0.25, "variant": "lag", "value_weight": 1.0, "prefix": 0, "prefill": "stepwise"})"));
  EXPECT_EQ(resolved("l2norm", {"prefix=4"}),
            Json::parse(R"({"layers": [0, 1, 2], "type": "none", "type_k": "type", "type_v": "type", "rotate": "on",
      "layout": "engine", "scale_k": 1.0, "scale_v": 1.0, "type_skip_layers": [], "ratio": 0.5,
      "skip_layers": [0, 1], "prefix": 4, "prefill": "whole"})"));
}

TEST(Parameters, ValuesKeepTheChunksOfKeysUnlessToldOtherwise) {
  const auto kept_v = [](const std::vector<std::string>& settings) {
    Parameters parameters({{parse_settings(settings, "settings"), "", ErrorCode::kUsage}}, 2);
    (void)make_cache(*find_method("faedkv"), parameters, layers_of(parameters, 1));
    return parameters.resolved().at("kept_v");
  };
  EXPECT_EQ(kept_v({"prefix=800"}), Json::array({0}));
  EXPECT_EQ(kept_v({"prefix=800", "kept=3,5"}), Json({3, 5}));
  EXPECT_EQ(kept_v({"prefix=800", "kept=3/0,5"}), Json::parse("[[3], [0, 5]]"));
  EXPECT_EQ(kept_v({"prefix=800", "kept=3/0,5", "kept_v=1"}), Json::array({1}));
  EXPECT_EQ(kept_v({"prefix=800", "kept=3", "kept_v=1/2,4"}), Json::parse("[[1], [2, 4]]"));
}

TEST(Parameters, ScalesOfHeadsStayListsByLayer) {
  for (const char* words : {"scale_k=1,2/3,4", "scale_k=1,2/1,2"}) {
    const Json given = parse_settings(std::vector<std::string>{words}, "settings");
    Parameters parameters({{given, "", ErrorCode::kUsage}}, 2);
    (void)make_cache(*find_method("full"), parameters, layers_of(parameters, 2));
    EXPECT_EQ(parameters.resolved().at("scale_k"), given.at("scale_k"));
  }
}

TEST(Parameters, AnIndexStandsOnce) {
  expect_error(ErrorCode::kUsage, "--set skip_layers: found 1 twice, expected each number once", [] {
    make("l2norm", {"prefix=4", "skip_layers=1,0,1"});
  });
}

TEST(Parameters, IndicesMayDifferByLayer) {
  Parameters parameters({{Json::parse(R"({"same": [0, 2], "own": [[1], []]})"), "", ErrorCode::kUsage}}, 2);
  using Indices = std::vector<std::size_t>;
  for (const std::size_t layer : {0U, 1U}) {
    ASSERT_TRUE(parameters.select(layer));
    EXPECT_EQ(parameters.indices("same", "", {}, 3), (Indices{0, 2}));
    EXPECT_EQ(parameters.indices("own", "", {}, 3), layer == 0 ? Indices{1} : Indices{});
  }
  EXPECT_EQ(parameters.resolved().at("own"), Json::parse("[[1], []]"));
}

TEST(CacheMethods, DescribeTheirParameters) {
  for (const Method* const method : all_methods()) {
    if (method->make == nullptr) continue;
    const std::vector<ParameterSpec> specs = describe(*method);
    EXPECT_EQ(specs.front().name, "layers") << method->name;
    EXPECT_EQ(specs.back().name, "prefill") << method->name;
  }
  const auto specs = describe(*find_method("dropping"));
  const auto size = std::ranges::find(specs, "cache_size", &ParameterSpec::name);
  ASSERT_NE(size, specs.end());
  EXPECT_TRUE(size->default_value.is_null());
  EXPECT_TRUE(size->per_layer);
  EXPECT_EQ(size->least, 2);
}

TEST(MakeCache, LeavesLayersWithASlidingWindowAlone) {
  EXPECT_EQ(make("freqkv", {"cache_size=64"}, {32, 0, 32}).max_tokens_per_call(), 64U);
  EXPECT_EQ(make("freqkv", {"cache_size=64"}, {32, 16, 32}).max_tokens_per_call(), LayerCache::kUnlimited);
}

}  // namespace
}  // namespace kvs::test
