// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace kvs {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

ExpertLayers experts_of(std::string_view model_type, const Json& config, std::size_t layers = 4) {
  return architecture_of_model_type(model_type, "test").experts->read(JsonCursor(config, "config.json"), layers);
}

void expect_refused(std::string_view model_type, const Json& config, const std::string& message) {
  try {
    experts_of(model_type, config);
    ADD_FAILURE() << "no error for " << config;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput) << error.what();
    EXPECT_THAT(std::string(error.what()), HasSubstr(message));
  }
}

TEST(Experts, MissingKeysAreWhatTheyAreInTheClass) {
  const ExpertLayers mixtral = experts_of("mixtral", Json::object());
  EXPECT_EQ(mixtral.experts.count, 8U);
  EXPECT_EQ(mixtral.experts.chosen, 2U);
  EXPECT_EQ(mixtral.experts.d_ff, 14336U);
  EXPECT_EQ(mixtral.experts.shared_d_ff, 0U);
  EXPECT_TRUE(mixtral.experts.normalised);
  EXPECT_THAT(mixtral.sparse, Each(true));
  const ExpertLayers qwen2 = experts_of("qwen2_moe", Json::object());
  EXPECT_EQ(qwen2.experts.count, 60U);
  EXPECT_EQ(qwen2.experts.chosen, 4U);
  EXPECT_EQ(qwen2.experts.d_ff, 1408U);
  EXPECT_EQ(qwen2.experts.shared_d_ff, 5632U);
  EXPECT_FALSE(qwen2.experts.normalised);
  const ExpertLayers qwen3 = experts_of("qwen3_moe", Json::object());
  EXPECT_EQ(qwen3.experts.count, 128U);
  EXPECT_EQ(qwen3.experts.chosen, 8U);
  EXPECT_EQ(qwen3.experts.d_ff, 768U);
  EXPECT_EQ(qwen3.experts.shared_d_ff, 0U);
  EXPECT_FALSE(qwen3.experts.normalised);
}

TEST(Experts, ReadsWhatTheConfigStates) {
  const ExpertLayers all = experts_of("qwen2_moe", {{"num_experts", 6},
                                                    {"num_experts_per_tok", 6},
                                                    {"moe_intermediate_size", 24},
                                                    {"shared_expert_intermediate_size", 40},
                                                    {"norm_topk_prob", true}});
  EXPECT_EQ(all.experts.count, 6U);
  EXPECT_EQ(all.experts.chosen, 6U);
  EXPECT_EQ(all.experts.d_ff, 24U);
  EXPECT_EQ(all.experts.shared_d_ff, 40U);
  EXPECT_TRUE(all.experts.normalised);
  EXPECT_EQ(experts_of("mixtral", {{"intermediate_size", 56}}).experts.d_ff, 56U);
}

// The attribute_map of each class in Transformers 5.24.
TEST(Experts, TheirNumberHasTheNamesOfTheClass) {
  for (const char* key : {"num_experts", "num_local_experts"})
    for (const char* type : {"qwen3_moe", "mixtral", "minimax_m2"})
      EXPECT_EQ(experts_of(type, {{key, 10}}).experts.count, 10U) << type << " " << key;
  EXPECT_EQ(experts_of("qwen2_moe", {{"num_experts", 10}, {"num_local_experts", 3}}).experts.count, 10U);
  EXPECT_EQ(experts_of("ernie4_5_moe", {{"moe_num_experts", 10}}).experts.count, 10U);
  EXPECT_EQ(experts_of("ernie4_5_moe", {{"num_experts_per_tok", 3}}).experts.chosen, 3U);
  EXPECT_EQ(experts_of("glm4_moe", {{"n_routed_experts", 10}}).experts.count, 10U);
  EXPECT_EQ(experts_of("mixtral", {{"n_routed_experts", 10}, {"moe_k", 1}, {"num_experts_per_tok", 3}}).experts.count,
            8U);
  EXPECT_EQ(experts_of("mixtral", {{"moe_k", 1}, {"num_experts_per_tok", 3}}).experts.chosen, 3U);
  expect_refused("mixtral", {{"num_experts", 10}, {"num_local_experts", 8}},
                 "/num_experts: found 10, expected 8, the value of /num_local_experts");
}

TEST(Experts, ErnieMayHaveNoSharedExpertsAndALeastSum) {
  EXPECT_EQ(experts_of("ernie4_5_moe", {{"moe_norm_min", 0.5}}).experts.least_sum, 0.5F);
  EXPECT_EQ(experts_of("ernie4_5_moe", {{"moe_num_shared_experts", 0}}).experts.shared_d_ff, 0U);
}

TEST(Experts, LayersOfTheListAndThoseBetweenStepsAreDense) {
  EXPECT_THAT(experts_of("qwen3_moe", {{"mlp_only_layers", {0, 2}}}).sparse, ElementsAre(false, true, false, true));
  EXPECT_THAT(experts_of("qwen3_moe", {{"mlp_only_layers", {99}}}).sparse, Each(true));
  EXPECT_THAT(experts_of("qwen2_moe", {{"decoder_sparse_step", 2}}).sparse, ElementsAre(false, true, false, true));
  EXPECT_THAT(experts_of("qwen2_moe", {{"decoder_sparse_step", 2}, {"mlp_only_layers", {1}}}).sparse,
              ElementsAre(false, false, false, true));
  EXPECT_THAT(experts_of("qwen2_moe", {{"decoder_sparse_step", 5}}).sparse, Each(false));
}

TEST(Experts, AModelWithoutSparseLayersNeedsNoGroups) {  // the class's 256 experts have no 3 groups
  const Json dense{{"first_k_dense_replace", 9}, {"n_group", 3}}, sparse{{"first_k_dense_replace", 3}, {"n_group", 3}};
  EXPECT_THAT(experts_of("deepseek_v3", dense).sparse, Each(false));
  expect_refused("deepseek_v3", sparse, "/n_group: found 3 groups, expected a divisor of 256 experts");
}

TEST(Experts, TheGreedyMethodHasNoGroups) {
  Json config{{"n_routed_experts", 9}, {"num_experts_per_tok", 6},      {"n_group", 3},
              {"topk_group", 1},       {"routed_scaling_factor", 2.5F}, {"topk_method", "greedy"}};
  const ExpertLayers all = experts_of("deepseek_v2", config);
  EXPECT_EQ(all.experts.groups, 1U);
  EXPECT_EQ(all.experts.chosen_groups, 1U);
  EXPECT_EQ(all.experts.scale, 2.5F);
  config["topk_method"] = "group_limited_greedy";
  expect_refused("deepseek_v2", config, "/topk_group: found 1 chosen groups of 3");
}

TEST(Experts, RefusesNumbersThatCannotBe) {
  expect_refused("qwen3_moe", {{"num_experts", 4}, {"num_experts_per_tok", 5}},
                 "config.json: /num_experts_per_tok: found 5, expected at most the 4 experts");
  expect_refused(
      "qwen3_moe", {{"num_experts", 4}},
      "config.json: /num_experts_per_tok: found nothing, which stands for 8, expected at most the 4 experts");
  for (const Json& value : {Json(0), Json(-1), Json(2.5), Json("8"), Json(1e30)}) {
    expect_refused("qwen3_moe", {{"num_experts", value}}, "/num_experts: found ");
    expect_refused("mixtral", {{"num_experts_per_tok", value}}, "/num_experts_per_tok: found ");
    expect_refused("qwen2_moe", {{"moe_intermediate_size", value}}, "/moe_intermediate_size: found ");
    expect_refused("qwen2_moe", {{"decoder_sparse_step", value}}, "/decoder_sparse_step: found ");
  }
  expect_refused("qwen3_moe", {{"mlp_only_layers", 3}}, "/mlp_only_layers: found 3");
  expect_refused("qwen3_moe", {{"mlp_only_layers", {"a"}}}, "/mlp_only_layers/0: found ");
  expect_refused("qwen3_moe", {{"norm_topk_prob", 1}}, "/norm_topk_prob: found 1");
}

}  // namespace
}  // namespace kvs
