// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/latent.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kGlmLiteMlp = pre_norm_mlp(B::kNone);
constexpr auto kGlmLiteExpertTensors = join(
    kMlpExperts, std::array{router_bias("model.layers.{}.mlp.gate.e_score_correction_bias")}, shared_experts(B::kNone));

ExpertLayers read_glm_lite_experts(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"n_routed_experts", "num_local_experts"},
                       .normalised = "norm_topk_prob",
                       .shared_count = "n_shared_experts",
                       .groups = true,
                       .types = "mlp_layer_types",
                       .first_default = 1,
                       .shared_count_default = 1,
                       .normalised_default = true,
                       .scores = ExpertsConfig::Scores::kSigmoid,
                       .scale_default = 1.8F,
                       .count_default = 64,
                       .chosen_default = 4,
                       .width_default = 1536});
}

constexpr ExpertKeys kGlmDsaKeys{.count = {"n_routed_experts", "num_local_experts"},
                                 .normalised = "norm_topk_prob",
                                 .shared_count = "n_shared_experts",
                                 .groups = true,
                                 .types = "mlp_layer_types",
                                 .first = "first_k_dense_replace",
                                 .first_default = 3,
                                 .shared_count_default = 1,
                                 .normalised_default = true,
                                 .scores = ExpertsConfig::Scores::kSigmoid,
                                 .scale_default = 2.5F,
                                 .count_default = 256,
                                 .chosen_default = 8,
                                 .width_default = 2048};
ExpertLayers read_glm_dsa_experts(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers, with_other_count(root, kGlmDsaKeys));
}

void read_glm_dsa_layers(const JsonCursor& root, ModelConfig& config) {
  read_latent_attention(root, config,
                        {.query_rank = 2048,
                         .plain_dim = 192,
                         .value_dim = 256,
                         .index = {.chosen = 2048, .heads = 32, .dim = 128},
                         .index_types = true});
}
void read_glm_lite_layers(const JsonCursor& root, ModelConfig& config) {
  read_latent_attention(root, config, {.query_rank = 768, .plain_dim = 192, .value_dim = 256});
}

// GGUF files of GLM-4.7-Flash say "deepseek2".
constexpr ExpertRules kGlmLiteRules{
    .read = read_glm_lite_experts, .keys = kExpertKeyNames, .tensors = kGlmLiteExpertTensors};
constexpr ExpertRules kGlmDsaRules{.read = read_glm_dsa_experts,
                                   .keys = kExpertKeyNames,
                                   .tensors = kGlmLiteExpertTensors,
                                   .gguf_scores = ExpertsConfig::Scores::kSigmoid};
constexpr LayerRules kGlmDsaLayers{
    .read = read_glm_dsa_layers, .keys = kIndexKeyNames, .read_gguf = read_gguf_latent_attention};
constexpr LayerRules kGlmLiteLayers{.read = read_glm_lite_layers, .keys = kLatentKeyNames};

}  // namespace

constexpr Architecture kGlm4MoeLite{.name = "glm4_moe_lite",
                                    .hf_class = "Glm4MoeLiteForCausalLM",
                                    .hf_base_class = "Glm4MoeLiteModel",
                                    .model_type = "glm4_moe_lite",
                                    .model_tensors = kModelTensors,
                                    .attention_tensors = kLatentAttention,
                                    .feed_forward_tensors = kGlmLiteMlp,
                                    .hf_interleaved = true,
                                    .experts = &kGlmLiteRules,
                                    .layers = &kGlmLiteLayers,
                                    .keys = {.norm_epsilon_default = 1e-5F,
                                             .attention_bias = "attention_bias",
                                             .interleaved = "rope_interleave",
                                             .head_dim = "qk_rope_head_dim",
                                             .head_dim_default = 64,
                                             .context_default = 202752}};

constexpr Architecture kGlmMoeDsa{.name = "glm_moe_dsa",
                                  .hf_class = "GlmMoeDsaForCausalLM",
                                  .hf_base_class = "GlmMoeDsaModel",
                                  .model_type = "glm_moe_dsa",
                                  .gguf = "glm-dsa",
                                  .model_tensors = kModelTensors,
                                  .attention_tensors = kIndexedAttention,
                                  .feed_forward_tensors = kGlmLiteMlp,
                                  .gguf_interleaved = true,
                                  .hf_interleaved = true,
                                  .index_interleaved = true,
                                  .experts = &kGlmDsaRules,
                                  .layers = &kGlmDsaLayers,
                                  .keys = {.norm_epsilon_default = 1e-5F,
                                           .attention_bias = "attention_bias",
                                           .head_dim = "qk_rope_head_dim",
                                           .head_dim_default = 64,
                                           .context_default = 202752},
                                  .rope = {.gguf_score_multiplier = true}};

}  // namespace kvs::inline model
