// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr TensorSpec kGlmAfterAttention{kAttentionOutputNorm, "model.layers.{}.post_self_attn_layernorm",
                                        "blk.{}.post_attention_norm", kModel, kNone};
constexpr TensorSpec kGlmAfterFeedForward{kFeedForwardOutputNorm, "model.layers.{}.post_mlp_layernorm",
                                          "blk.{}.post_ffw_norm", kModel, kNone};
constexpr std::string_view kGlmGateUp = "model.layers.{}.mlp.gate_up_proj";
constexpr auto kGlm4Attention =
    join(std::array{kInputNorm}, qkv(B::kAttention), std::array{o_proj(B::kNone), kGlmAfterAttention});
constexpr std::array kGlm4FeedForward{kMiddleNorm, TensorSpec{kGate, kGlmGateUp, "blk.{}.ffn_up", kFeedForward, kModel},
                                      TensorSpec{kUp, kGlmGateUp, "blk.{}.ffn_up", kFeedForward, kModel},
                                      down_proj(B::kNone), kGlmAfterFeedForward};

constexpr auto kGlm4MoeAttention = pre_norm_attention(B::kAttention, B::kNone, qk_norms(kHeadDim, kHeadDim));
constexpr auto kGlm4MoeFeedForward = join(std::array{kPostAttentionNorm}, gated_mlp(B::kNone));
constexpr auto kGlm4MoeExperts =
    join(std::array{kPostAttentionNorm, router("model.layers.{}.mlp.gate")}, kExpertsOfMlp,
         std::array{router_bias("model.layers.{}.mlp.gate.e_score_correction_bias")}, shared_experts(B::kNone));

ExpertLayers read_glm4_moe(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"n_routed_experts", "num_local_experts"},
                       .normalised = "norm_topk_prob",
                       .shared_count = "n_shared_experts",
                       .groups = true,
                       .first = "first_k_dense_replace",
                       .first_default = 1,
                       .shared_count_default = 1,
                       .normalised_default = true,
                       .scores = ExpertsConfig::Scores::kSigmoid,
                       .count_default = 128,
                       .chosen_default = 8,
                       .width_default = 1408});
}

constexpr ExpertRules kGlm4MoeRules{.read = read_glm4_moe,
                                    .keys = kExpertKeyNames,
                                    .tensors = kGlm4MoeExperts,
                                    .gguf_scores = ExpertsConfig::Scores::kSigmoid};

}  // namespace

constexpr Architecture kGlm4{.name = "glm4",
                             .hf_class = "Glm4ForCausalLM",
                             .hf_base_class = "Glm4Model",
                             .model_type = "glm4",
                             .gguf = "glm4",
                             .model_tensors = kModelTensors,
                             .attention_tensors = kGlm4Attention,
                             .feed_forward_tensors = kGlm4FeedForward,
                             .arithmetic = {.output_norms = true},
                             .gguf_interleaved = true,
                             .hf_interleaved = true,
                             .keys = {.norm_epsilon_default = 1.5625e-7F,
                                      .attention_bias = "attention_bias",
                                      .attention_bias_default = true,
                                      .head_dim_default = 128,
                                      .kv_heads_default = 2,
                                      .context_default = 131072},
                             .rope = {.share_key = "partial_rotary_factor", .share = 0.5}};

constexpr Architecture kGlm4Moe{.name = "glm4_moe",
                                .hf_class = "Glm4MoeForCausalLM",
                                .hf_base_class = "Glm4MoeModel",
                                .model_type = "glm4_moe",
                                .gguf = "glm4moe",
                                .model_tensors = kModelTensors,
                                .attention_tensors = kGlm4MoeAttention,
                                .feed_forward_tensors = kGlm4MoeFeedForward,
                                .arithmetic = {.qk_norm = QkNorm::kHead},
                                .experts = &kGlm4MoeRules,
                                .keys = {.norm_epsilon_default = 1e-5F,
                                         .attention_bias = "attention_bias",
                                         .qk_norm = "use_qk_norm",
                                         .kv_heads_default = 8,
                                         .context_default = 131072},
                                .rope = {.share_key = "partial_rotary_factor", .share = 0.5}};

}  // namespace kvs::inline model
