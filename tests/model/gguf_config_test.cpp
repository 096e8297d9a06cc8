// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/cache_shape.h"
#include "model/parsed_config.h"
#include "tests/model/gguf_metadata.h"

namespace kvs {
namespace {

using test::expect_refused;
using test::metadata;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::size_t> windows(const ModelConfig& config) {
  std::vector<std::size_t> sizes;
  for (const LayerConfig& layer : config.layer) sizes.push_back(layer.attention.window);
  return sizes;
}

TEST(GgufConfig, LlamaKeepsItsArithmetic) {
  const ModelConfig config = parse_gguf_config(metadata("llama")).config;
  EXPECT_FALSE(config.has_windows());
  EXPECT_EQ(config.arithmetic.qk_norm, QkNorm::kNone);
  EXPECT_EQ(config.layer[0].attention.softcap, 0);
  EXPECT_EQ(config.logit_softcap, 0);
  EXPECT_EQ(config.layer[0].attention.scale, 0);
}

TEST(GgufConfig, ListsByLayerOfEqualNumbersAreOneNumber) {
  FakeGguf file = metadata("llama");
  file.values["llama.attention.head_count_kv"] = GgufArray(std::vector<std::int64_t>{1, 1, 1});
  EXPECT_EQ(parse_gguf_config(file).config.kv_heads(), 1U);
  file.values["llama.attention.head_count_kv"] = GgufArray(std::vector<std::int64_t>{1, 1});
  expect_refused(file, ErrorCode::kInput, "head_count_kv: found a list, expected a number, or one for each layer");
  file.values["llama.attention.head_count_kv"] = GgufArray(std::vector<std::int64_t>{-1, -1, -1});
  expect_refused(file, ErrorCode::kInput, "head_count_kv: found -1, expected");
  file.values["llama.block_count"] = GgufArray(std::vector<std::int64_t>{3});
  expect_refused(file, ErrorCode::kInput, "block_count: found a list");
}

TEST(GgufConfig, ConstantsBeyondF32AreRefused) {
  for (const double value : {1e300, 1e-300}) {
    FakeGguf file = metadata("llama");
    file.values["llama.attention.layer_norm_rms_epsilon"] = value;
    expect_refused(file, ErrorCode::kInput, "expected a number above 0 in the range of f32");
  }
}

TEST(GgufConfig, NamesWhatIsWrongWithAnEmbedding) {
  FakeGguf file = metadata("llama");
  file.values.erase("llama.vocab_size");
  expect_refused(file, ErrorCode::kInput, "token_embd.weight: is missing");
  file.add_tensor("token_embd.weight", {1, 2, 3});
  expect_refused(file, ErrorCode::kInput, "token_embd.weight: found 1 dimensions, expected a matrix");
}

TEST(GgufConfig, ListsByLayerAreNotSupported) {
  for (const char* key : {"attention.head_count_kv", "attention.head_count", "feed_forward_length"}) {
    FakeGguf file = metadata("llama");
    file.values[std::string("llama.") + key] = GgufArray(std::vector<std::int64_t>{2, 1, 2});
    expect_refused(file, ErrorCode::kUnsupported, std::string(key) + ": found 1 to 2 by layer");
  }
}

TEST(GgufConfig, MistralsWindowIsEveryLayers) {
  FakeGguf file = metadata("llama");
  file.values["llama.attention.sliding_window"] = std::uint64_t{128};
  EXPECT_THAT(windows(parse_gguf_config(file).config), ElementsAre(128, 128, 128));
}

TEST(GgufConfig, Gemma2HasLlamaCppsDefaults) {
  const ModelConfig config = parse_gguf_config(metadata("gemma2")).config;
  EXPECT_THAT(windows(config), ElementsAre(4096, 0, 4096));
  EXPECT_EQ(config.layer[0].attention.softcap, 50);
  EXPECT_EQ(config.logit_softcap, 30);
  EXPECT_TRUE(config.arithmetic.scaled_embeddings);
  EXPECT_TRUE(config.arithmetic.output_norms);
  EXPECT_EQ(config.layer[0].attention.scale, 0);
  EXPECT_TRUE(config.tied_head);
}

TEST(GgufConfig, The27BsDivideScoresByTheModelsWidthPerHead) {
  EXPECT_FLOAT_EQ(parse_gguf_config(metadata("gemma2", 46)).config.layer[0].attention.scale, 1 / std::sqrt(64.0F / 4));
  EXPECT_FLOAT_EQ(parse_gguf_config(metadata("gemma3", 62)).config.layer[0].attention.scale, 1 / std::sqrt(64.0F / 4));
}

TEST(GgufConfig, Gemma3sLocalLayersTurnByTheirOwnBase) {
  FakeGguf file = metadata("gemma3", 7);
  file.values["gemma3.attention.sliding_window"] = std::uint64_t{9};
  file.values["gemma3.rope.freq_base"] = 1e6;
  const ModelConfig config = parse_gguf_config(file).config;
  EXPECT_THAT(windows(config), ElementsAre(9, 9, 9, 9, 9, 0, 9));
  EXPECT_EQ(config.rope(0).theta, 1e4);
  EXPECT_EQ(config.rope(5).theta, 1e6);
  EXPECT_EQ(config.logit_softcap, 0);
  EXPECT_EQ(config.arithmetic.qk_norm, QkNorm::kHead);
}

TEST(GgufConfig, PatternsAsAPeriodOrLayerByLayer) {
  FakeGguf file = metadata("gemma3", 3);
  file.values["gemma3.attention.sliding_window"] = std::uint64_t{9};
  file.values["gemma3.attention.sliding_window_pattern"] = std::uint64_t{2};
  EXPECT_THAT(windows(parse_gguf_config(file).config), ElementsAre(9, 0, 9));
  file.values["gemma3.attention.sliding_window_pattern"] = GgufArray(std::vector<bool>{false, true, true});
  EXPECT_THAT(windows(parse_gguf_config(file).config), ElementsAre(0, 9, 9));
  file.values["gemma3.attention.sliding_window_pattern"] = GgufArray(std::vector<bool>{false, true});
  expect_refused(file, ErrorCode::kInput, "sliding_window_pattern");
  file.values["gemma3.attention.sliding_window_pattern"] = std::uint64_t{0};
  expect_refused(file, ErrorCode::kInput, "sliding_window_pattern");
}

TEST(GgufConfig, APatternIsRefusedWhereEveryLayerHasTheWindow) {
  FakeGguf file = metadata("llama");
  file.values["llama.attention.sliding_window"] = std::uint64_t{16};
  file.values["llama.attention.sliding_window_pattern"] = std::uint64_t{2};
  expect_refused(file, ErrorCode::kUnsupported, "llama.attention.sliding_window_pattern: found a pattern");
}

TEST(GgufConfig, GptNeoxSaysWhetherItsBlocksAreParallel) {
  FakeGguf file = metadata("gptneox");
  EXPECT_TRUE(parse_gguf_config(file).config.arithmetic.parallel_residual);
  file.values["gptneox.use_parallel_residual"] = false;
  const ModelConfig config = parse_gguf_config(file).config;
  EXPECT_FALSE(config.arithmetic.parallel_residual);
  FakeGguf sequential = metadata("qwen2");
  sequential.values["qwen2.use_parallel_residual"] = true;  // llama.cpp reads it in GPT-NeoX alone
  EXPECT_FALSE(parse_gguf_config(sequential).config.arithmetic.parallel_residual);
  EXPECT_EQ(config.arithmetic.norm, NormKind::kLayer);
  EXPECT_FALSE(config.arithmetic.gated);
  EXPECT_EQ(config.norm_epsilon, 1e-6F);
}

/// Metadata of a model of 8 experts, of which 2 are chosen.
FakeGguf with_experts(const std::string& architecture) {
  FakeGguf file = metadata(architecture);
  file.values[architecture + ".expert_count"] = std::uint64_t{8};
  file.values[architecture + ".expert_used_count"] = std::uint64_t{2};
  return file;
}

TEST(GgufConfig, EveryLayerHasTheExperts) {
  FakeGguf file = with_experts("llama");
  for (const LayerConfig& layer : parse_gguf_config(file).config.layer) {
    const ExpertsConfig& experts = layer.feed_forward.experts;
    EXPECT_EQ(experts.count, 8U);
    EXPECT_EQ(experts.chosen, 2U);
    EXPECT_EQ(experts.d_ff, 96U);
    EXPECT_EQ(experts.shared_d_ff, 0U);
    EXPECT_TRUE(experts.normalised);
  }
  file = with_experts("qwen2moe");
  file.values["qwen2moe.expert_feed_forward_length"] = std::uint64_t{24};
  file.values["qwen2moe.expert_shared_feed_forward_length"] = std::uint64_t{40};
  const ExpertsConfig qwen = parse_gguf_config(file).config.layer[2].feed_forward.experts;
  EXPECT_EQ(qwen.d_ff, 24U);
  EXPECT_EQ(qwen.shared_d_ff, 40U);
  EXPECT_FALSE(qwen.normalised);
  EXPECT_TRUE(parse_gguf_config(with_experts("qwen3moe")).config.layer[0].feed_forward.experts.normalised);
}

TEST(GgufConfig, TheFirstLayersAndThoseBetweenStepsAreDense) {
  FakeGguf file = with_experts("ernie4_5-moe");
  file.values["ernie4_5-moe.block_count"] = std::uint64_t{6};
  file.values["ernie4_5-moe.leading_dense_block_count"] = std::uint64_t{2};
  file.values["ernie4_5-moe.interleave_moe_layer_step"] = std::uint64_t{2};
  file.values["ernie4_5-moe.expert_shared_feed_forward_length"] = std::uint64_t{7};  // the tensors decide
  file.add_tensor("blk.3.ffn_up_shexp.weight", std::vector<float>(40));
  const ModelConfig config = parse_gguf_config(file).config;
  for (std::size_t layer = 0; layer < 6; ++layer)
    EXPECT_EQ(config.layer[layer].feed_forward.is_sparse(), layer == 3 || layer == 5) << layer;
  EXPECT_EQ(config.layer[3].feed_forward.experts.shared_d_ff, 40U);
}

TEST(GgufConfig, ScoresOfExpertsAreTheFilesOrTheFamilys) {
  using Scores = ExpertsConfig::Scores;
  const auto scores = [](const FakeGguf& file) {
    return parse_gguf_config(file).config.layer[0].feed_forward.experts.scores;
  };
  EXPECT_EQ(scores(with_experts("glm4moe")), Scores::kSigmoid);
  EXPECT_EQ(scores(with_experts("qwen3moe")), Scores::kSoftmax);
  FakeGguf file = with_experts("glm4moe");
  file.values["glm4moe.expert_gating_func"] = std::uint64_t{1};
  EXPECT_EQ(scores(file), Scores::kSoftmax);
  file.values["glm4moe.expert_gating_func"] = std::uint64_t{4};
  expect_refused(file, ErrorCode::kUnsupported, "glm4moe.expert_gating_func: found 4");
}

TEST(GgufConfig, LayersThatPredictFurtherTokensAreLeftOut) {
  FakeGguf file = with_experts("glm4moe");
  file.values["glm4moe.nextn_predict_layers"] = std::uint64_t{1};
  EXPECT_EQ(parse_gguf_config(file).config.layers(), 2U);
  file.values["glm4moe.nextn_predict_layers"] = std::uint64_t{3};
  expect_refused(file, ErrorCode::kInput, "glm4moe.nextn_predict_layers: found 3");
}

TEST(GgufConfig, AnOlmo2WithAWindowIsAnOlmo3) {
  FakeGguf file = metadata("olmo2", 4);
  EXPECT_EQ(parse_gguf_config(file).config.architecture, "olmo2");
  file.values["olmo2.attention.sliding_window"] = std::uint64_t{64};
  file.values["olmo2.rope.freq_base"] = 5e5;
  file.values["olmo2.rope.scaling.type"] = std::string_view("linear");
  file.values["olmo2.rope.scaling.factor"] = 2.0;
  const ModelConfig config = parse_gguf_config(file).config;
  EXPECT_EQ(config.architecture, "olmo3");
  EXPECT_THAT(windows(config), ElementsAre(64, 64, 64, 0));
  EXPECT_EQ(config.rope(3).scaling.factor, 2);
  EXPECT_EQ(config.rope(0).scaling.type, RopeScaling::Type::kDefault);
  EXPECT_EQ(config.rope(0).theta, 5e5);
}

TEST(GgufConfig, LayersWithoutRopeFollowFromTheFamily) {
  const auto unrotated = [](const FakeGguf& file) { return parse_gguf_config(file).config.unrotated_layers(); };
  EXPECT_EQ(unrotated(metadata("smollm3", 8)), 2U);
  FakeGguf file = metadata("exaone4", 8);
  EXPECT_EQ(unrotated(file), 0U);
  file.values["exaone4.attention.sliding_window"] = std::uint64_t{64};
  EXPECT_EQ(unrotated(file), 2U);
}

TEST(GgufConfig, Mistral3HasATemperatureAndAYarnOfUnitFactor) {
  FakeGguf file = metadata("mistral3");
  EXPECT_EQ(parse_gguf_config(file).config.layer[0].attention.temperature.scale, 0);
  file.values["mistral3.attention.temperature_scale"] = 0.1;
  file.values["mistral3.rope.scaling.type"] = std::string_view("yarn");
  file.values["mistral3.rope.scaling.factor"] = 16.0;
  file.values["mistral3.rope.scaling.original_context_length"] = std::uint64_t{32};
  file.values["mistral3.rope.scaling.yarn_log_multiplier"] = 1.0;
  const ModelConfig config = parse_gguf_config(file).config;
  EXPECT_EQ(config.layer[0].attention.temperature.length, 32U);
  EXPECT_FLOAT_EQ(config.layer[0].attention.temperature.at(64), 1 + 0.1F * std::log(3.0F));
  EXPECT_EQ(config.ropes.front().scaling.attention_factor, 1);
}

TEST(GgufConfig, AStableLmWithoutASecondNormIsParallel) {
  FakeGguf file = metadata("stablelm");
  file.values["stablelm.attention.layer_norm_epsilon"] = 1e-5;
  file.values["stablelm.use_parallel_residual"] = false;  // llama.cpp goes by the tensor
  EXPECT_TRUE(parse_gguf_config(file).config.arithmetic.parallel_residual);
  file.add_tensor("blk.0.ffn_norm.weight", std::vector<float>(64));
  EXPECT_FALSE(parse_gguf_config(file).config.arithmetic.parallel_residual);
}

TEST(GgufConfig, ANormOfAnyLayerTellsThatThereAreNorms) {
  FakeGguf file = metadata("stablelm");
  file.values["stablelm.attention.layer_norm_epsilon"] = 1e-5;
  file.add_tensor("blk.2.ffn_norm.weight", {1});
  EXPECT_FALSE(parse_gguf_config(file).config.arithmetic.parallel_residual);
  file = metadata("phi2");
  file.values["phi2.attention.layer_norm_epsilon"] = 1e-5;
  EXPECT_EQ(parse_gguf_config(file).config.arithmetic.qk_norm, QkNorm::kNone);
  file = metadata("glm4moe");
  EXPECT_EQ(parse_gguf_config(file).config.arithmetic.qk_norm, QkNorm::kNone);
  file.add_tensor("blk.1.attn_q_norm.weight", {1});
  EXPECT_EQ(parse_gguf_config(file).config.arithmetic.qk_norm, QkNorm::kHead);
}

TEST(GgufConfig, ALlamaMayStateThatItHasNoExperts) {
  FakeGguf file = metadata("llama");
  file.values["llama.expert_count"] = std::uint64_t{0};
  EXPECT_FALSE(parse_gguf_config(file).config.has_experts());
}

TEST(GgufConfig, MoreExpertsThanThereAreAreRefused) {
  FakeGguf file = with_experts("qwen3moe");
  file.values["qwen3moe.expert_used_count"] = std::uint64_t{9};
  expect_refused(file, ErrorCode::kInput, "qwen3moe.expert_used_count: found 9, expected at most the 8 experts");
  file.values["qwen3moe.expert_used_count"] = std::uint64_t{0};
  expect_refused(file, ErrorCode::kInput, "qwen3moe.expert_used_count: found 0");
  file.values.erase("qwen3moe.expert_used_count");
  expect_refused(file, ErrorCode::kInput, "qwen3moe.expert_used_count");
}

TEST(GgufConfig, GgmlKeepsTheChannelsThatRotateInAdjacentPairs) {
  FakeGguf file = metadata("glm4");
  file.values["glm4.rope.dimension_count"] = std::uint64_t{8};
  EXPECT_EQ(cache_shape(parse_gguf_config(file).config).adjacent_pairs, 8U);
  EXPECT_EQ(cache_shape(parse_gguf_config(metadata("llama")).config).adjacent_pairs, 16U);
  EXPECT_EQ(cache_shape(parse_gguf_config(metadata("qwen2")).config).adjacent_pairs, 0U);
}

/// Metadata of a latent attention with 12 channels of a head, of which 4 rotate, and a latent of 20.
FakeGguf latent() {
  FakeGguf file = metadata("deepseek2");
  const auto set = [&](const char* key, std::uint64_t value) { file.values[std::string("deepseek2.") + key] = value; };
  set("attention.key_length", 24);
  set("attention.value_length", 20);
  set("attention.key_length_mla", 12);
  set("attention.value_length_mla", 10);
  set("attention.kv_lora_rank", 20);
  set("rope.dimension_count", 4);
  return file;
}

TEST(GgufConfig, LatentAttentionRefusesWhatOthersRefuse) {
  EXPECT_EQ(parse_gguf_config(latent()).config.head_dim(), 24U);
  for (const auto& [key, value] :
       {std::pair{"attention.causal", GgufValue(false)}, std::pair{"attention.scale", GgufValue(0.5)},
        std::pair{"attention.max_alibi_bias", GgufValue(8.0)}, std::pair{"logit_scale", GgufValue(0.5)},
        std::pair{"attn_logit_softcapping", GgufValue(50.0)}, std::pair{"final_logit_softcapping", GgufValue(30.0)},
        std::pair{"attention.key_length", GgufValue(std::uint64_t{20})},
        std::pair{"attention.value_length", GgufValue(std::uint64_t{10})}}) {
    FakeGguf file = latent();
    file.values[std::string("deepseek2.") + key] = value;
    expect_refused(file, ErrorCode::kUnsupported, std::string("deepseek2.") + key);
  }
}

TEST(GgufConfig, RefusesWhatItWouldNotCompute) {
  for (const auto& [architecture, key, value] :
       {std::tuple{"qwen2", "attention.sliding_window", GgufValue(std::uint64_t{64})},
        std::tuple{"minimax-m2", "attention.sliding_window", GgufValue(std::uint64_t{64})},
        std::tuple{"olmoe", "attention.scale", GgufValue(0.5)}, std::tuple{"llama", "attention.scale", GgufValue(0.5)},
        std::tuple{"llama", "logit_scale", GgufValue(0.5)},
        std::tuple{"gemma3", "attn_logit_softcapping", GgufValue(50.0)},
        std::tuple{"llama", "attention.causal", GgufValue(false)},
        std::tuple{"qwen2", "expert_count", GgufValue(std::uint64_t{8})},
        std::tuple{"qwen3", "attention.value_length", GgufValue(std::uint64_t{8})}}) {
    FakeGguf file = metadata(architecture);
    file.values[std::string(architecture) + "." + key] = value;
    expect_refused(file, ErrorCode::kUnsupported, std::string(architecture) + "." + key);
  }
}

}  // namespace
}  // namespace kvs
