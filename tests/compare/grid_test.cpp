// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace kvs {
namespace {

using ::testing::HasSubstr;

ModelConfig small_shape() {
  ModelConfig model;
  model.layer.assign(2, {.attention = {.query_heads = 2, .kv_heads = 2, .head_dim = 32}, .feed_forward = {}});
  model.d_model = 64;
  model.context = 1024;
  return model;
}

std::vector<Configuration> configurations_of(std::vector<std::string> methods, std::vector<std::string> types,
                                             std::vector<std::string> composed) {
  return grid_configurations({.methods = std::move(methods),
                              .types = std::move(types),
                              .composed = std::move(composed),
                              .budgets = {0.5, 0.25},
                              .tokens = 200,
                              .prefix = 150},
                             small_shape());
}

const Configuration& one(const std::vector<Configuration>& configurations, const std::string& label, double budget) {
  const auto found = std::ranges::find_if(
      configurations, [&](const Configuration& one) { return one.label == label && one.budget == budget; });
  EXPECT_NE(found, configurations.end()) << label << ' ' << budget;
  return found == configurations.end() ? configurations.front() : *found;
}

TEST(CompareGrid, EveryMethodHasTheSizeOfEachBudget) {
  const auto configurations = configurations_of({"streaming", "snapkv"}, {}, {"q8_0"});
  EXPECT_EQ(one(configurations, "streaming", 0.5).settings, Json({{"cache_size", 100}}));
  EXPECT_EQ(one(configurations, "streaming", 0.25).settings, Json({{"cache_size", 50}}));
  // 34 bytes for 32 values: 94 tokens where 50 fit without.
  EXPECT_EQ(one(configurations, "streaming + q8_0", 0.25).settings, Json({{"type", "q8_0"}, {"cache_size", 94}}));
  // The tokens after the prefix of 150 tokens are kept.
  EXPECT_THAT(one(configurations, "snapkv", 0.25).error, HasSubstr("needs "));
  EXPECT_EQ(one(configurations, "snapkv + q8_0", 0.5).settings.at("prefix"), 150);
}

TEST(CompareGrid, AStorageTypeHasOneSize) {
  const auto configurations = configurations_of({"full", "kivi"}, {"q8_0", "q4_0", "q8_0/q4_0", "f16", "bf17"}, {});
  EXPECT_THAT(one(configurations, "q8_0", 0.5).error, HasSubstr("needs 53.1 %"));
  EXPECT_EQ(one(configurations, "q4_0", 0.5).settings, Json({{"type", "q4_0"}}));
  EXPECT_EQ(one(configurations, "q8_0/q4_0", 0.5).settings, Json({{"type_k", "q8_0"}, {"type_v", "q4_0"}}));
  EXPECT_THAT(one(configurations, "bf17", 0.5).error, HasSubstr("bf17"));
  EXPECT_TRUE(std::ranges::none_of(configurations, [](const Configuration& one) { return one.label == "f16"; }));
}

TEST(CompareGrid, AMethodThatKeepsKeysAloneDoesNotKeepEverything) {
  const auto keeps = [](const Json& kept, const Json& kept_v) {
    return keeps_everything(*find_method("faedkv"),
                            {{"prefix", 150}, {"chunks", 3}, {"kept", kept}, {"kept_v", kept_v}}, 200);
  };
  EXPECT_TRUE(keeps({0, 1, 2}, {0, 1, 2}));
  EXPECT_FALSE(keeps({0, 1, 2}, {0, 1}));
  EXPECT_FALSE(keeps({0, 1}, {0, 1, 2}));
}

TEST(CompareGrid, WhatAStorageTypeReachesAloneIsNoConfiguration) {
  const auto configurations = configurations_of({"streaming"}, {}, {"q4_0"});
  EXPECT_TRUE(std::ranges::none_of(
      configurations, [](const Configuration& one) { return one.label == "streaming + q4_0" && one.budget == 0.5; }));
  EXPECT_TRUE(one(configurations, "streaming + q4_0", 0.25).error.empty());
}

}  // namespace
}  // namespace kvs
