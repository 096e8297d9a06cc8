// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/recurrence.h"
#include "model/families/tensors.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kHybridAttention = pre_norm_attention(B::kAttention, B::kAttention);
constexpr std::string_view kSharedInputs = "model.layers.{}.shared_mlp.input_linear",
                           kSharedOutput = "model.layers.{}.shared_mlp.output_linear";
constexpr std::array kHybridFeedForward{
    kMiddleNorm, TensorSpec{kGate, kSharedInputs, "blk.{}.ffn_gate", tensors::kFeedForward, kModel},
    TensorSpec{kUp, kSharedInputs, "blk.{}.ffn_up", tensors::kFeedForward, kModel},
    TensorSpec{kDown, kSharedOutput, "blk.{}.ffn_down", kModel, tensors::kFeedForward}};
constexpr auto kHybridRecurrence = join(std::array{kInputNorm}, mamba2({.input = "model.layers.{}.mamba.in_proj",
                                                                        .taps = "model.layers.{}.mamba.conv1d",
                                                                        .decay = "model.layers.{}.mamba.A_log",
                                                                        .step_bias = "model.layers.{}.mamba.dt_bias",
                                                                        .skip = "model.layers.{}.mamba.D",
                                                                        .norm = "model.layers.{}.mamba.norm",
                                                                        .output = "model.layers.{}.mamba.out_proj"}));

ExpertLayers read_granite_hybrid_experts(const JsonCursor& root, std::size_t layers) {
  constexpr std::string_view kCount = "num_local_experts";
  if (root.has(kCount) && root.at(kCount).unsigned_integer(kMaxWidth) == 0) return {};
  return read_experts(root, layers,
                      {.width = "intermediate_size",
                       .shared_width = "shared_intermediate_size",
                       .count_default = 8,
                       .chosen_default = 2,
                       .width_default = 11008,
                       .shared_width_default = 1024});
}

constexpr std::string_view kOtherTypes = "layers_block_type";  // holds in Transformers, where both are stated

void read_granite_hybrid(const JsonCursor& root, ParsedConfig& parsed) {
  std::vector<LayerConfig>& layers = parsed.config.layer;
  RecurrenceConfig block = read_mamba2(root, {});
  read_step_limits(root, block);
  const std::string_view key = root.has(kOtherTypes) ? kOtherTypes : "layer_types";
  const std::vector<std::size_t> types = read_layer_types(root, layers.size(), kMixerKinds, key);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (!types.empty() && !is_recurrent(types[layer])) continue;
    check_mixer_activation(root, "hidden_act");
    layers[layer].attention = {};
    layers[layer].recurrence = block;
  }
}

void read_gguf_granite_hybrid(const GgufKeys& keys, ParsedConfig& parsed) {
  const std::vector<LayerConfig>& layers = parsed.config.layer;
  const auto first = std::ranges::find_if_not(layers, &LayerConfig::has_attention);
  if (first == layers.end()) return;
  const auto layer = static_cast<std::size_t>(first - layers.begin());
  set_gguf_mixers(read_gguf_mamba2(keys, with_number("blk.{}.ssm_norm.weight", layer)), parsed);
}

constexpr std::array<std::string_view, 3> kHybridKeyNames{"position_embedding_type", "shared_intermediate_size",
                                                          kOtherTypes};
constexpr auto kHybridKeys = join(kMamba2KeyNames, kHybridKeyNames);
constexpr ExpertRules kHybridExpertRules{
    .read = read_granite_hybrid_experts, .gguf_normalised = true, .keys = kExpertKeyNames, .tensors = kGraniteExperts};
constexpr RecurrenceRules kHybridRules{.read = read_granite_hybrid,
                                       .keys = kHybridKeys,
                                       .tensors = kHybridRecurrence,
                                       .read_gguf = read_gguf_granite_hybrid};

}  // namespace

constexpr Architecture kGraniteMoeHybrid{.name = "granitemoehybrid",
                                         .hf_class = "GraniteMoeHybridForCausalLM",
                                         .hf_base_class = "GraniteMoeHybridModel",
                                         .model_type = "granitemoehybrid",
                                         .gguf = "granitehybrid",
                                         .model_tensors = kModelTensors,
                                         .attention_tensors = kHybridAttention,
                                         .feed_forward_tensors = kHybridFeedForward,
                                         .unrotated = UnrotatedRule::kUnlessStated,
                                         .gguf_interleaved = true,
                                         .experts = &kHybridExpertRules,
                                         .recurrence = &kHybridRules,
                                         .keys = {.attention_bias = "attention_bias",
                                                  .convolution_bias = "mamba_conv_bias",
                                                  .convolution_bias_default = true,
                                                  .d_ff = "shared_intermediate_size",
                                                  .d_ff_default = 1024,
                                                  .multipliers = true}};

}  // namespace kvs::inline model
