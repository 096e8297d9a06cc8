// SPDX-License-Identifier: Apache-2.0
#include "model/hf_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace kvs {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Architecture& row_of(std::string_view model_type) { return architecture_of_model_type(model_type, "test"); }

std::vector<std::size_t> windows(std::string_view model_type, const Json& config, std::size_t layers) {
  return hf_windows(JsonCursor(config, "config.json"), row_of(model_type), layers);
}

void expect_refused(std::string_view model_type, const Json& config, ErrorCode code, const std::string& message) {
  std::vector<std::string> notes;
  try {
    check_hf_options(JsonCursor(config, "config.json"), row_of(model_type), notes);
    windows(model_type, config, 2);
    hf_activation(JsonCursor(config, "config.json"), row_of(model_type));
    ADD_FAILURE() << "no error for " << config;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(std::string(error.what()), HasSubstr(message));
  }
}

TEST(HfWindows, QwensUpperLayersHaveOneIfItIsSwitchedOn) {
  EXPECT_THAT(windows("qwen2", {{"sliding_window", 9}}, 3), Each(0U));
  EXPECT_THAT(windows("qwen2", {{"sliding_window", 9}, {"use_sliding_window", true}, {"max_window_layers", 1}}, 3),
              ElementsAre(0, 9, 9));
  // 28 is the class's max_window_layers.
  EXPECT_THAT(windows("qwen3", {{"sliding_window", 9}, {"use_sliding_window", true}}, 28), Each(0U));
  EXPECT_EQ(windows("qwen3", {{"sliding_window", 9}, {"use_sliding_window", true}}, 29).back(), 9U);
}

TEST(HfWindows, AModelWithExpertsHasOneIfItIsSwitchedOn) {
  const Json given{{"sliding_window", 9}}, on{{"sliding_window", 9}, {"use_sliding_window", true}};
  for (const char* type : {"qwen2_moe", "qwen3_moe"}) EXPECT_THAT(windows(type, given, 4), Each(0U)) << type;
  EXPECT_THAT(windows("qwen3_moe", on, 4), Each(9U));
  EXPECT_THAT(windows("qwen2_moe", on, 4), ElementsAre(9, 0, 9, 0));
  EXPECT_THAT(windows("mixtral", given, 4), Each(9U));
  Json border = on;
  border["max_window_layers"] = 2;
  EXPECT_THAT(windows("qwen2_moe", border, 4), ElementsAre(9, 0, 0, 0));
  border["layer_types"] = {"full_attention", "sliding_attention", "full_attention", "full_attention"};
  EXPECT_THAT(windows("qwen2_moe", border, 4), ElementsAre(0, 9, 0, 0));
}

TEST(HfWindows, GemmasLayersAlternate) {
  EXPECT_THAT(windows("gemma2", {{"sliding_window", 5}}, 4), ElementsAre(5, 0, 5, 0));
  EXPECT_THAT(windows("gemma3_text", {{"sliding_window", 5}}, 7), ElementsAre(5, 5, 5, 5, 5, 0, 5));
  EXPECT_THAT(windows("gemma3_text", {{"sliding_window", 5}, {"sliding_window_pattern", 3}}, 4),
              ElementsAre(5, 5, 0, 5));
}

TEST(HfWindows, APeriodMayBeLetters) {
  EXPECT_THAT(windows("exaone4", {{"sliding_window", 5}, {"sliding_window_pattern", "LLG"}}, 4),
              ElementsAre(5, 5, 0, 5));
  for (const char* letters : {"", "LGL", "LLX", "GG"})
    expect_refused("exaone4", {{"sliding_window", 5}, {"sliding_window_pattern", letters}}, ErrorCode::kInput,
                   "/sliding_window_pattern");
}

std::vector<bool> unrotated(std::string_view model_type, const Json& config, const std::vector<std::size_t>& windows) {
  ModelConfig model;
  for (const std::size_t window : windows) model.layer.push_back({.attention = {.window = window}, .feed_forward = {}});
  return hf_unrotated(JsonCursor(config, "config.json"), row_of(model_type), model);
}

TEST(HfUnrotated, LayersAreListedOrFollowFromWindows) {
  EXPECT_THAT(unrotated("llama", Json::object(), {0, 0}), ElementsAre(false, false));
  EXPECT_THAT(unrotated("smollm3", {{"no_rope_layers", {1, 0}}}, {0, 0}), ElementsAre(false, true));
  EXPECT_THAT(unrotated("smollm3", {{"no_rope_layer_interval", 2}}, {0, 0, 0, 0}),
              ElementsAre(false, true, false, true));
  EXPECT_THAT(unrotated("smollm3", Json::object(), {0, 0, 0, 0}), ElementsAre(false, false, false, true));
  EXPECT_THAT(unrotated("cohere2", Json::object(), {0, 0}), ElementsAre(true, true));
  EXPECT_THAT(unrotated("exaone4", {{"sliding_window", nullptr}}, {0, 0}), ElementsAre(false, false));
  EXPECT_THAT(unrotated("exaone4", {{"sliding_window", 8}}, {0, 0}), ElementsAre(true, true));
  EXPECT_THAT(unrotated("exaone4", Json::object(), {8, 0}), ElementsAre(false, true));
  for (const Json& list : {Json{1}, Json{1, 2}, Json{1, "0"}, Json(1)})
    EXPECT_THROW(unrotated("smollm3", {{"no_rope_layers", list}}, {0, 0}), Error) << list;
}

TEST(HfWindows, LayerTypesDecideWhereLayersMayDiffer) {
  const Json types{"full_attention", "sliding_attention"};
  EXPECT_THAT(windows("gemma2", {{"sliding_window", 5}, {"layer_types", types}}, 2), ElementsAre(0, 5));
  expect_refused("gemma2", {{"sliding_window", nullptr}, {"layer_types", types}}, ErrorCode::kInput, "/layer_types");
  expect_refused("qwen2", {{"sliding_window", 5}, {"layer_types", types}}, ErrorCode::kInput, "/layer_types");
  expect_refused("mistral", {{"sliding_window", 5}, {"layer_types", types}}, ErrorCode::kUnsupported, "/layer_types");
  expect_refused("llama", {{"layer_types", types}}, ErrorCode::kUnsupported, "/layer_types");
  expect_refused("gemma2", {{"layer_types", {"full_attention", "chunked_attention"}}}, ErrorCode::kUnsupported,
                 "chunked_attention");
  expect_refused("gemma2", {{"layer_types", {"full_attention"}}}, ErrorCode::kInput, "/layer_types");
}

TEST(HfWindows, SizesAreChecked) {
  for (const Json& value : {Json(0), Json(-1), Json(2.5), Json("4096"), Json(1e30)}) {
    expect_refused("mistral", {{"sliding_window", value}}, ErrorCode::kInput, "/sliding_window");
  }
  expect_refused("gemma3_text", {{"sliding_window_pattern", 0}}, ErrorCode::kInput, "/sliding_window_pattern");
}

TEST(HfOptions, KeysOfOtherClassesAreRefusedUnlessTheyChangeNothing) {
  for (const auto& [type, key, value] :
       {std::tuple{"llama", "attention_multiplier", Json(0.1)}, std::tuple{"llama", "residual_multiplier", Json(0.2)},
        std::tuple{"llama", "use_sliding_window", Json(true)}, std::tuple{"llama", "sliding_window", Json(8)},
        std::tuple{"qwen2", "final_logit_softcapping", Json(30)}, std::tuple{"qwen2", "attention_bias", Json(true)},
        std::tuple{"gemma3_text", "attn_logit_softcapping", Json(50)}, std::tuple{"gpt_neox", "mlp_bias", Json(true)},
        std::tuple{"gemma2", "use_bidirectional_attention", Json(true)},
        std::tuple{"hunyuan_v1_moe", "use_cla", Json(true)}, std::tuple{"deepseek_v32", "mlp_bias", Json(true)},
        std::tuple{"gemma4_text", "is_causal", Json(false)}, std::tuple{"llama", "is_causal", Json(0)},
        std::tuple{"llama", "per_layer_config", Json{{"0", {{"head_dim", 8}}}}},
        std::tuple{"phi3", "num_local_experts", Json(8)}, std::tuple{"olmo2", "clip_qkv", Json(8.0)},
        std::tuple{"gemma2", "sliding_window_pattern", Json(3)}}) {
    expect_refused(type, {{key, value}}, ErrorCode::kUnsupported, std::string("/") + key);
  }
  std::vector<std::string> notes;
  const Json neutral{{"attention_multiplier", nullptr},
                     {"residual_multiplier", 1},
                     {"use_sliding_window", false},
                     {"clip_qkv", nullptr},
                     {"per_layer_config", Json::object()},
                     {"max_window_layers", 28},
                     {"is_causal", true}};
  check_hf_options(JsonCursor(neutral, "config.json"), row_of("llama"), notes);
  EXPECT_THAT(notes, IsEmpty());
}

TEST(HfOptions, ASwitchThatTransformersDoesNotHeedIsNoted) {
  std::vector<std::string> notes;
  check_hf_options(JsonCursor(Json{{"use_qk_norm", true}}, "config.json"), row_of("hunyuan_v1_dense"), notes);
  EXPECT_THAT(notes, IsEmpty());
  check_hf_options(JsonCursor(Json{{"use_qk_norm", false}}, "config.json"), row_of("hunyuan_v1_moe"), notes);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("/use_qk_norm: found false, which HunYuanMoEV1ForCausalLM does not heed")));
}

TEST(HfOptions, ActivationsByName) {
  const auto activation = [](std::string_view type, const Json& config) {
    return hf_activation(JsonCursor(config, "config.json"), row_of(type));
  };
  EXPECT_EQ(activation("llama", Json::object()), Activation::kSilu);
  EXPECT_EQ(activation("gpt_neox", Json::object()), Activation::kGeluErf);
  EXPECT_EQ(activation("gemma2", Json::object()), Activation::kGeluTanh);
  EXPECT_EQ(activation("gpt_neox", {{"hidden_act", "gelu_new"}}), Activation::kGeluTanh);
  EXPECT_EQ(activation("gemma2", {{"hidden_activation", "gelu"}}), Activation::kGeluErf);
  expect_refused("llama", {{"hidden_act", "relu2"}}, ErrorCode::kUnsupported, "relu2");
  expect_refused("gemma2", {{"hidden_act", "gelu"}}, ErrorCode::kUnsupported, "/hidden_act");
  expect_refused("gemma2", {{"hidden_act", "gelu"}, {"hidden_activation", "silu"}}, ErrorCode::kUnsupported,
                 "/hidden_act");
}

}  // namespace
}  // namespace kvs
