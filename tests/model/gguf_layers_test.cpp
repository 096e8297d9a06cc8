// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_layers.h"

#include <cmath>
#include <limits>
#include <optional>

#include "tests/model/gguf_metadata.h"

namespace kvs {
namespace {

using test::expect_refused;
using test::metadata;
using testing::ElementsAre;
using Kind = RecurrenceConfig::Kind;

GgufArray numbers(std::vector<std::int64_t> values) { return GgufArray(std::move(values)); }

/// Metadata with the sizes of a block of 6 value heads of 10 channels and 2 key heads of 12.
FakeGguf with_mixers(const std::string& architecture, std::uint64_t layers = 4) {
  FakeGguf file = metadata(architecture, layers);
  const auto set = [&](const char* key, std::uint64_t value) { file.values[architecture + ".ssm." + key] = value; };
  set("conv_kernel", 4);
  set("state_size", 12);
  set("group_count", 2);
  set("time_step_rank", 6);
  set("inner_size", 60);
  return file;
}

std::vector<Kind> mixers(const ModelConfig& config) {
  std::vector<Kind> kinds;
  for (const LayerConfig& layer : config.layer) kinds.push_back(layer.recurrence.kind);
  return kinds;
}

std::vector<std::size_t> kv_heads(const ModelConfig& config) {
  std::vector<std::size_t> heads;
  for (const LayerConfig& layer : config.layer) heads.push_back(layer.attention.kv_heads);
  return heads;
}

TEST(GgufLayers, ThreeOfFourLayersOfQwen35AreRecurrent) {
  FakeGguf file = with_mixers("qwen35");
  const ModelConfig config = parse_gguf_config(file).config;
  EXPECT_THAT(kv_heads(config), ElementsAre(0, 0, 0, 2));
  const RecurrenceConfig& block = config.layer[1].recurrence;
  EXPECT_EQ(block.kind, Kind::kDeltaNet);
  EXPECT_EQ(block.key_heads, 2U);
  EXPECT_EQ(block.value_heads, 6U);
  EXPECT_EQ(block.key_head_dim, 12U);
  EXPECT_EQ(block.value_head_dim, 10U);
  EXPECT_EQ(block.norm_channels, 10U);
  EXPECT_TRUE(block.tiled_heads);
  EXPECT_FALSE(parse_gguf_config(with_mixers("qwen3next")).config.layer[1].recurrence.tiled_heads);
  file.values["qwen35.ssm.group_count"] = std::uint64_t{6};
  EXPECT_FALSE(parse_gguf_config(file).config.layer[1].recurrence.tiled_heads);  // the order of one for each
}

TEST(GgufLayers, AFileMayListItsRecurrentLayers) {
  FakeGguf file = with_mixers("qwen35", 3);
  file.values["qwen35.full_attention_interval"] = std::uint64_t{2};
  EXPECT_THAT(mixers(parse_gguf_config(file).config), ElementsAre(Kind::kDeltaNet, Kind::kNone, Kind::kDeltaNet));
  file.values["qwen35.attention.recurrent_layers"] = GgufArray(std::vector<bool>{false, true, false});
  EXPECT_THAT(mixers(parse_gguf_config(file).config), ElementsAre(Kind::kNone, Kind::kDeltaNet, Kind::kNone));
  file.values["qwen35.attention.recurrent_layers"] = GgufArray(std::vector<bool>{false, true});
  expect_refused(file, ErrorCode::kInput, "qwen35.attention.recurrent_layers: expected a list");
  file.values["qwen35.attention.recurrent_layers"] = GgufArray(std::vector<bool>{true, true, true});
  expect_refused(file, ErrorCode::kUnsupported, "found no layer with attention");
}

TEST(GgufLayers, LayersWithoutKvHeadsHaveMamba2) {
  FakeGguf file = with_mixers("granitehybrid", 3);
  file.values["granitehybrid.attention.head_count_kv"] = numbers({0, 2, 0});
  file.add_tensor("blk.0.ssm_norm.weight", std::vector<float>(60));
  ModelConfig config = parse_gguf_config(file).config;
  EXPECT_THAT(kv_heads(config), ElementsAre(0, 2, 0));
  EXPECT_THAT(mixers(config), ElementsAre(Kind::kMamba2, Kind::kNone, Kind::kMamba2));
  EXPECT_TRUE(config.layer[0].recurrence.gate_first);
  EXPECT_EQ(config.layer[0].recurrence.norm_channels, 30U);
  EXPECT_EQ(config.rope(1).scaling.type, RopeScaling::Type::kNone);
  file.values["granitehybrid.rope.scaling.finetuned"] = true;
  EXPECT_EQ(parse_gguf_config(file).config.rope(1).scaling.type, RopeScaling::Type::kDefault);
  file.values["granitehybrid.attention.head_count_kv"] = numbers({0, 0, 0});
  expect_refused(file, ErrorCode::kUnsupported, "head_count_kv: found no layer with attention");
}

TEST(GgufLayers, HeadsAndWidthsTellTheBlocksOfNemotronH) {
  FakeGguf file = with_mixers("nemotron_h_moe", 4);
  file.values["nemotron_h_moe.attention.head_count_kv"] = numbers({0, 2, 0, 0});
  file.values["nemotron_h_moe.feed_forward_length"] = numbers({0, 0, 24, 96});
  file.values["nemotron_h_moe.expert_count"] = std::uint64_t{8};
  file.values["nemotron_h_moe.expert_used_count"] = std::uint64_t{2};
  file.values["nemotron_h_moe.expert_feed_forward_length"] = std::uint64_t{24};
  file.values["nemotron_h_moe.expert_group_count"] = std::uint64_t{1};
  file.values["nemotron_h_moe.moe_latent_size"] = std::uint64_t{20};
  file.add_tensor("blk.2.ffn_gate_inp.weight", std::vector<float>(8));
  const ModelConfig config = parse_gguf_config(file).config;
  EXPECT_EQ(config.architecture, "nemotron_h");
  EXPECT_THAT(mixers(config), ElementsAre(Kind::kMamba2, Kind::kNone, Kind::kNone, Kind::kNone));
  EXPECT_EQ(config.layer[0].recurrence.least_step, 0.001F);
  EXPECT_EQ(config.layer[0].recurrence.norm_channels, 0U);  // the file holds no norm
  EXPECT_FALSE(config.layer[0].has_feed_forward());
  const ExpertsConfig& experts = config.layer[2].feed_forward.experts;
  EXPECT_EQ(experts.count, 8U);
  EXPECT_EQ(experts.latent, 20U);
  EXPECT_EQ(experts.scores, ExpertsConfig::Scores::kSigmoid);
  EXPECT_FALSE(config.layer[3].feed_forward.is_sparse());
  EXPECT_EQ(config.layer[3].feed_forward.d_ff, 96U);
  file.values["nemotron_h_moe.feed_forward_length"] = numbers({0, 24, 24, 96});
  expect_refused(file, ErrorCode::kInput, "feed_forward_length: found 24 in layer 1, expected 0");
}

TEST(GgufLayers, AShortConvolutionHasTheModelsChannels) {
  FakeGguf file = metadata("lfm2", 3);
  file.values["lfm2.attention.head_count_kv"] = numbers({0, 2, 0});
  file.values["lfm2.shortconv.l_cache"] = std::uint64_t{3};
  const ModelConfig config = parse_gguf_config(file).config;
  EXPECT_THAT(mixers(config), ElementsAre(Kind::kShortConvolution, Kind::kNone, Kind::kShortConvolution));
  EXPECT_EQ(config.layer[0].recurrence.channels(), 64U);
  EXPECT_EQ(config.layer[0].recurrence.kernel, 3U);
  file.values["lfm2.feed_forward_length"] = numbers({96, 0, 96});
  expect_refused(file, ErrorCode::kInput, "lfm2.feed_forward_length: found 0 in layer 1, expected 1 or more");
}

TEST(GgufLayers, SizesOfRecurrentBlocksAreChecked) {
  for (const auto& [key, value] : {std::pair{"ssm.time_step_rank", 7}, std::pair{"ssm.group_count", 4},
                                   std::pair{"ssm.conv_kernel", 0}, std::pair{"ssm.state_size", 0}}) {
    FakeGguf file = with_mixers("falcon-h1");
    file.values[std::string("falcon-h1.") + key] = static_cast<std::uint64_t>(value);
    expect_refused(file, ErrorCode::kInput, std::string("falcon-h1.") + key + ": found " + std::to_string(value));
  }
  const ModelConfig config = parse_gguf_config(with_mixers("falcon-h1")).config;
  EXPECT_TRUE(config.layer[0].has_attention());
  EXPECT_TRUE(config.layer[0].has_recurrence());
}

/// Metadata of a Gemma 4 whose full layers, every second one, have 32 channels in one KV head, of which 8 rotate.
FakeGguf gemma4() {
  FakeGguf file = metadata("gemma4", 4);
  const auto set = [&](const char* key, const GgufValue& value) { file.values[std::string("gemma4.") + key] = value; };
  set("attention.key_length", std::uint64_t{32});
  set("attention.value_length", std::uint64_t{32});
  set("attention.key_length_swa", std::uint64_t{16});
  set("attention.value_length_swa", std::uint64_t{16});
  set("attention.head_count_kv", numbers({2, 1, 2, 1}));
  set("attention.sliding_window", std::uint64_t{64});
  set("attention.sliding_window_pattern", GgufArray(std::vector<bool>{true, false, true, false}));
  set("feed_forward_length", numbers({96, 96, 192, 192}));
  set("rope.dimension_count", std::uint64_t{32});
  set("rope.dimension_count_swa", std::uint64_t{16});
  std::vector<float> factors(16, 1e30F);
  std::fill_n(factors.begin(), 4, 1.0F);
  file.add_tensor("rope_freqs.weight", factors);
  return file;
}

TEST(GgufLayers, LayersOfGemma4HaveSizesOfTheirOwn) {
  FakeGguf file = gemma4();
  const ModelConfig config = parse_gguf_config(file).config;
  EXPECT_THAT(kv_heads(config), ElementsAre(2, 1, 2, 1));
  EXPECT_EQ(config.layer[0].attention.head_dim, 16U);
  EXPECT_EQ(config.layer[1].attention.head_dim, 32U);
  EXPECT_EQ(config.layer[3].feed_forward.d_ff, 192U);
  EXPECT_EQ(config.layer[0].attention.scale, 1);
  EXPECT_EQ(config.rope(0).scaling.type, RopeScaling::Type::kDefault);
  EXPECT_EQ(config.rope(0).rotary_dim, 16U);
  EXPECT_EQ(config.rope(1).scaling.type, RopeScaling::Type::kProportional);
  EXPECT_EQ(config.rope(1).scaling.share, 0.25);
  EXPECT_EQ(config.rope(1).rotary_dim, 32U);
  file.values["gemma4.attention.head_count_kv"] = numbers({2, 0, 2, 1});
  expect_refused(file, ErrorCode::kInput, "head_count_kv: found 0 in layer 1");
  file.values["gemma4.attention.head_count_kv"] = numbers({2, 3, 2, 1});
  expect_refused(file, ErrorCode::kInput, "layer 1: found attention.head_count 4 and attention.head_count_kv 3");
}

TEST(GgufLayers, TheTensorsOfGemma4TellWhereItsRowsComeFrom) {
  FakeGguf file = gemma4();
  file.add_tensor("blk.0.attn_k.weight", {1});
  file.add_tensor("blk.0.attn_v.weight", {1});
  file.add_tensor("blk.1.attn_k.weight", {1});
  file.values["gemma4.attention.shared_kv_layers"] = std::uint64_t{2};
  const ModelConfig config = parse_gguf_config(file).config;
  EXPECT_FALSE(config.layer[0].attention.one_row);
  EXPECT_TRUE(config.layer[1].attention.one_row);
  EXPECT_EQ(config.layer[2].attention.kv_layer, 0U);
  EXPECT_EQ(config.layer[3].attention.kv_layer, 1U);
  EXPECT_TRUE(config.layer[3].attention.one_row);
  file.values["gemma4.attention.shared_kv_layers"] = std::uint64_t{3};
  expect_refused(file, ErrorCode::kInput, "shared_kv_layers: found 3, expected fewer");
  file.values["gemma4.attention.shared_kv_layers"] = std::uint64_t{2};
  file.values["gemma4.attention.head_count_kv"] = numbers({2, 1, 1, 1});
  expect_refused(file, ErrorCode::kInput, "shared_kv_layers: found 1 KV heads of 16 channels in layer 2");
}

TEST(GgufLayers, OtherDivisorsOfGemma4sFrequenciesStayAsTheyAre) {
  FakeGguf file = gemma4();
  FakeGguf other = metadata("gemma4", 4);
  other.values = file.values;
  expect_refused(other, ErrorCode::kInput, "found no tensor rope_freqs");
  std::vector<float> factors(16, 1e30F);
  factors[0] = 2;
  other.add_tensor("rope_freqs.weight", factors);
  EXPECT_EQ(parse_gguf_config(other).config.rope(1).scaling.type, RopeScaling::Type::kFactors);
}

/// Metadata of a Llama 4 with experts in every second layer.
FakeGguf llama4(std::uint64_t experts = 16) {
  FakeGguf file = metadata("llama4", 8);
  file.values["llama4.expert_count"] = experts;
  file.values["llama4.expert_used_count"] = std::uint64_t{1};
  file.values["llama4.expert_feed_forward_length"] = std::uint64_t{24};
  file.values["llama4.interleave_moe_layer_step"] = std::uint64_t{2};
  for (std::size_t layer = 1; layer < 8; layer += 2)
    file.add_tensor("blk." + std::to_string(layer) + ".ffn_gate_inp.weight", {1});
  return file;
}

TEST(GgufLayers, Llama4HasLlamaCppsConstantsUnlessAFileStatesOthers) {
  FakeGguf file = llama4();
  const auto check = [&](std::size_t chunk, std::size_t step, bool norms) {
    const ModelConfig config = parse_gguf_config(file).config;
    for (std::size_t layer = 0; layer < config.layers(); ++layer) {
      const AttentionConfig& attention = config.layer[layer].attention;
      const bool full = layer % 4 == 3;
      EXPECT_EQ(attention.chunk, full ? 0 : chunk) << layer;
      EXPECT_EQ(attention.unit_norms, norms && !full) << layer;
      EXPECT_EQ(attention.temperature.scale, full ? 0.1F : 0.0F) << layer;
      EXPECT_EQ(attention.temperature.length, full ? step : 1) << layer;
      const ExpertsConfig& experts = config.layer[layer].feed_forward.experts;
      EXPECT_EQ(experts.count > 0, layer % 2 == 1) << layer;
      EXPECT_EQ(experts.scaled_inputs, layer % 2 == 1) << layer;
      EXPECT_FALSE(experts.normalised);
    }
    EXPECT_EQ(config.unrotated_layers(), 2U);
    EXPECT_EQ(config.layer[1].feed_forward.experts.scores, ExpertsConfig::Scores::kSigmoid);
    EXPECT_EQ(config.arithmetic.norms_after_rope, norms);
  };
  check(8192, 8192, true);
  file.values["llama4.attention.chunk_size"] = std::uint64_t{48};
  file.values["llama4.attention.floor_scale"] = std::uint64_t{20};
  check(48, 20, true);
  file = llama4(128);
  check(8192, 8192, false);
  file.values["llama4.use_qk_norm"] = true;
  check(8192, 8192, true);
  file.values["llama4.attention.temperature_tuning"] = false;
  EXPECT_EQ(parse_gguf_config(file).config.layer[3].attention.temperature.scale, 0);
  file.values["llama4.attention.sliding_window"] = std::uint64_t{0};
  expect_refused(file, ErrorCode::kUnsupported, "llama4.attention.sliding_window: found 0, full attention");
}

TEST(GgufLayers, OllamasIntervalTellsWhichLayersOfLlama4DoNotRotate) {
  FakeGguf file = llama4();
  file.values["llama4.no_rope_interval"] = std::uint64_t{2};
  const ModelConfig config = parse_gguf_config(file).config;
  for (std::size_t layer = 0; layer < config.layers(); ++layer) {
    const AttentionConfig& attention = config.layer[layer].attention;
    const bool full = layer % 2 == 1;
    EXPECT_EQ(attention.chunk, full ? 0U : 8192U) << layer;
    EXPECT_EQ(attention.unit_norms, !full) << layer;
    EXPECT_EQ(attention.temperature.scale, full ? 0.1F : 0.0F) << layer;
    EXPECT_EQ(config.rope(layer).scaling.type == RopeScaling::Type::kNone, full) << layer;
  }
  file.values["llama4.no_rope_interval"] = std::uint64_t{0};
  expect_refused(file, ErrorCode::kInput, "llama4.no_rope_interval: found 0");
}

TEST(GgufLayers, Gemma3nHasLlamaCppsConstantsUnlessAFileStatesOthers) {
  FakeGguf file = metadata("gemma3n", 22);
  const auto set = [&](const char* key, const GgufValue& value) { file.values[std::string("gemma3n.") + key] = value; };
  const ModelConfig plain = parse_gguf_config(file).config;
  EXPECT_EQ(plain.streams.count, 4U);
  EXPECT_EQ(plain.layer_inputs, 256U);
  EXPECT_EQ(plain.logit_softcap, 30);
  EXPECT_EQ(plain.layer[9].feed_forward.sparsity, 0.95F);
  EXPECT_EQ(plain.layer[10].feed_forward.sparsity, 0);
  EXPECT_EQ(plain.layer[20].attention.kv_layer, 18U);  // the last two layers read those of the first 20
  EXPECT_EQ(plain.layer[19].attention.kv_layer, std::nullopt);
  EXPECT_EQ(plain.layer[3].attention.window, 512U);
  EXPECT_EQ(plain.layer[4].attention.window, 0U);
  EXPECT_EQ(plain.rope(3).theta, 1e4);
  EXPECT_EQ(plain.layer[0].attention.scale, 1);
  std::vector<double> scales(22, -std::numeric_limits<double>::infinity());
  scales[1] = 1.6448536269514722;  // the quantile of 0.95
  set("activation_sparsity_scale", GgufArray(scales));
  set("attention.shared_kv_layers", std::uint64_t{10});
  set("altup.num_inputs", std::uint64_t{3});
  const ModelConfig config = parse_gguf_config(file).config;
  EXPECT_EQ(config.layer[0].feed_forward.sparsity, 0);
  EXPECT_FLOAT_EQ(config.layer[1].feed_forward.sparsity, 0.95F);
  EXPECT_TRUE(config.layer[12].attention.kv_layer.has_value());
  EXPECT_EQ(config.streams.count, 3U);
}

TEST(GgufLayers, KeysOfGemma3nAreChecked) {
  const auto refuse = [](const char* key, const GgufValue& value, ErrorCode code, const std::string& message) {
    FakeGguf file = metadata("gemma3n", 3);
    file.values[std::string("gemma3n.") + key] = value;
    expect_refused(file, code, std::string(key) + ": " + message);
  };
  refuse("altup.active_idx", std::uint64_t{1}, ErrorCode::kUnsupported, "found 1, supported is: 0");
  refuse("altup.num_inputs", std::uint64_t{1}, ErrorCode::kInput, "found 1, expected 2 to 64");
  refuse("activation_sparsity_scale", GgufArray(std::vector<double>{0, 0}), ErrorCode::kInput, "expected a list");
  refuse("activation_sparsity_scale", GgufArray(std::vector<double>{0, 9, 0}), ErrorCode::kInput,
         "found 9.000000 in layer 1");
  refuse("activation_sparsity_scale", GgufArray(std::vector<double>{0, std::nan(""), 0}), ErrorCode::kInput,
         "found nan");
  refuse("attention.shared_kv_layers", std::uint64_t{3}, ErrorCode::kInput, "found 3, expected fewer");
}

TEST(GgufLayers, OtherFamiliesHaveLayersOfOneSize) {
  FakeGguf file = metadata("llama");
  file.values["llama.attention.head_count_kv"] = numbers({1, 2, 1});
  expect_refused(file, ErrorCode::kUnsupported, "head_count_kv: found 1 to 2 by layer");
}

}  // namespace
}  // namespace kvs
