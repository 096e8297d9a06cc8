// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/latent.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kDeepseekMlp = pre_norm_mlp(B::kFeedForward);
constexpr auto kDeepseekV32Mlp = pre_norm_mlp(B::kNone);  // no mlp_bias, although its class has the key
constexpr auto kDeepseekV2ExpertTensors = join(kMlpExperts, shared_experts(B::kFeedForward));
constexpr auto kDeepseekV3ExpertTensors =
    join(kMlpExperts, std::array{optional_in_gguf(router_bias("model.layers.{}.mlp.gate.e_score_correction_bias"))},
         shared_experts(B::kNone));

/// DeepSeek-V2 never divides the weights by their sum. A group's score is its largest; the greedy method has no groups,
/// whatever the keys of groups say.
ExpertLayers read_deepseek_v2(const JsonCursor& root, std::size_t layers) {
  constexpr std::string_view kMethod = "topk_method";
  const std::string method = root.has(kMethod) ? root.at(kMethod).string() : "greedy";
  if (method != "greedy" && method != "group_limited_greedy")
    throw Error(ErrorCode::kUnsupported, root.at(kMethod).place(),
                "found \"" + method.substr(0, 80) + "\", supported are: greedy, group_limited_greedy");
  const bool grouped = method != "greedy";
  ExpertLayers all = read_experts(root, layers,
                                  {.count = {"n_routed_experts", "num_experts"},
                                   .shared_count = "n_shared_experts",
                                   .groups = grouped,
                                   .first = "first_k_dense_replace",
                                   .shared_count_default = 2,
                                   .count_default = 64,
                                   .width_default = 1407});
  all.experts.normalised = false;
  all.experts.group_scores = 1;
  constexpr std::string_view kScale = "routed_scaling_factor";
  if (!grouped && root.has(kScale)) all.experts.scale = static_cast<float>(root.at(kScale).positive_f32());
  return all;
}

constexpr ExpertKeys kDeepseekV3Keys{.count = {"n_routed_experts", "num_local_experts"},
                                     .normalised = "norm_topk_prob",
                                     .shared_count = "n_shared_experts",
                                     .groups = true,
                                     .first = "first_k_dense_replace",
                                     .first_default = 3,
                                     .shared_count_default = 1,
                                     .normalised_default = true,
                                     .scores = ExpertsConfig::Scores::kSigmoid,
                                     .scale_default = 2.5F,
                                     .groups_default = 8,
                                     .chosen_groups_default = 4,
                                     .count_default = 256,
                                     .chosen_default = 8,
                                     .width_default = 2048};
ExpertLayers read_deepseek_v3(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers, kDeepseekV3Keys);
}
ExpertLayers read_deepseek_v32(const JsonCursor& root, std::size_t layers) {
  ExpertKeys keys = kDeepseekV3Keys;
  keys.types = "mlp_layer_types";
  return read_experts(root, layers, with_other_count(root, keys));
}

void read_indexed_layers(const JsonCursor& root, ModelConfig& config) {
  read_latent_attention(root, config, {.index = {.chosen = 2048, .heads = 64, .dim = 128}});
}
void read_deepseek_layers(const JsonCursor& root, ModelConfig& config) { read_latent_attention(root, config, {}); }

constexpr ExpertRules kDeepseekV2Rules{
    .read = read_deepseek_v2, .keys = kExpertKeyNames, .tensors = kDeepseekV2ExpertTensors};
constexpr ExpertRules kDeepseekV3Rules{.read = read_deepseek_v3,
                                       .keys = kExpertKeyNames,
                                       .tensors = kDeepseekV3ExpertTensors,
                                       .gguf_group_scores = 1};  // llama.cpp's one architecture: DeepSeek-V2
constexpr ExpertRules kDeepseekV32Rules{
    .read = read_deepseek_v32, .keys = kExpertKeyNames, .tensors = kDeepseekV3ExpertTensors};
constexpr LayerRules kIndexedLayers{.read = read_indexed_layers, .keys = kIndexKeyNames};
constexpr LayerRules kDeepseekLayers{
    .read = read_deepseek_layers, .keys = kLatentKeyNames, .read_gguf = read_gguf_latent_attention};

}  // namespace

constexpr Architecture kDeepseekV2{.name = "deepseek_v2",
                                   .hf_class = "DeepseekV2ForCausalLM",
                                   .hf_base_class = "DeepseekV2Model",
                                   .model_type = "deepseek_v2",
                                   .model_tensors = kModelTensors,
                                   .attention_tensors = kLatentAttention,
                                   .feed_forward_tensors = kDeepseekMlp,
                                   .hf_interleaved = true,
                                   .experts = &kDeepseekV2Rules,
                                   .layers = &kDeepseekLayers,
                                   .keys = {.attention_bias = "attention_bias",
                                            .mlp_bias = "mlp_bias",
                                            .head_dim = "qk_rope_head_dim",
                                            .head_dim_default = 64}};

constexpr Architecture kDeepseekV3{.name = "deepseek_v3",
                                   .hf_class = "DeepseekV3ForCausalLM",
                                   .hf_base_class = "DeepseekV3Model",
                                   .model_type = "deepseek_v3",
                                   .gguf = "deepseek2",
                                   .model_tensors = kModelTensors,
                                   .attention_tensors = kLatentAttention,
                                   .feed_forward_tensors = kDeepseekMlp,
                                   .gguf_interleaved = true,
                                   .hf_interleaved = true,
                                   .experts = &kDeepseekV3Rules,
                                   .layers = &kDeepseekLayers,
                                   .keys = {.attention_bias = "attention_bias",
                                            .interleaved = "rope_interleave",
                                            .head_dim = "qk_rope_head_dim",
                                            .head_dim_default = 64,
                                            .context_default = 4096},
                                   .rope = {.gguf_score_multiplier = true}};

constexpr Architecture kDeepseekV32{.name = "deepseek_v32",
                                    .hf_class = "DeepseekV32ForCausalLM",
                                    .hf_base_class = "DeepseekV32Model",
                                    .model_type = "deepseek_v32",
                                    .model_tensors = kModelTensors,
                                    .attention_tensors = kIndexedAttention,
                                    .feed_forward_tensors = kDeepseekV32Mlp,
                                    .hf_interleaved = true,
                                    .experts = &kDeepseekV32Rules,
                                    .layers = &kIndexedLayers,
                                    .keys = {.attention_bias = "attention_bias",
                                             .head_dim = "qk_rope_head_dim",
                                             .head_dim_default = 64,
                                             .context_default = 163840}};

}  // namespace kvs::inline model
