// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kHunyuanAttention = pre_norm_attention(
    B::kAttention, B::kAttention,
    std::array{
        TensorSpec{kQueryNorm, "model.layers.{}.self_attn.query_layernorm", "blk.{}.attn_q_norm", kHeadDim, kNone},
        TensorSpec{kKeyNorm, "model.layers.{}.self_attn.key_layernorm", "blk.{}.attn_k_norm", kHeadDim, kNone}});
constexpr auto kHunyuanFeedForward = pre_norm_mlp(B::kNone);

constexpr auto kHunyuanExperts = join(std::array{kMiddleNorm, router("model.layers.{}.mlp.gate.wg")}, kExpertsOfMlp,
                                      std::array{TensorSpec{kSharedGate, "model.layers.{}.mlp.shared_mlp.gate_proj",
                                                            "blk.{}.ffn_gate_shexp", kSharedWidth, kModel},
                                                 TensorSpec{kSharedUp, "model.layers.{}.mlp.shared_mlp.up_proj",
                                                            "blk.{}.ffn_up_shexp", kSharedWidth, kModel},
                                                 TensorSpec{kSharedDown, "model.layers.{}.mlp.shared_mlp.down_proj",
                                                            "blk.{}.ffn_down_shexp", kModel, kSharedWidth}});

ExpertLayers read_hunyuan(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"num_experts", "num_local_experts"},
                       .chosen = {"moe_topk", "num_experts_per_tok"},
                       .width = "intermediate_size",
                       .shared_width = "intermediate_size",
                       .count_default = 1,
                       .chosen_default = 1,
                       .width_default = 11008,
                       .shared_width_default = 11008});
}

constexpr ExpertRules kHunyuanRules{
    .read = read_hunyuan, .gguf_normalised = true, .keys = kExpertKeyNames, .tensors = kHunyuanExperts};

constexpr ConfigKeys kHunyuanKeys{.norm_epsilon_default = 1e-5F,
                                  .attention_bias = "attention_bias",
                                  .unheeded = "use_qk_norm"};  // it always normalises

}  // namespace

// Norms of queries and keys follow RoPE.
constexpr Architecture kHunyuanDense{.name = "hunyuan_v1_dense",
                                     .hf_class = "HunYuanDenseV1ForCausalLM",
                                     .hf_base_class = "HunYuanDenseV1Model",
                                     .model_type = "hunyuan_v1_dense",
                                     .gguf = "hunyuan-dense",
                                     .model_tensors = kModelTensors,
                                     .attention_tensors = kHunyuanAttention,
                                     .feed_forward_tensors = kHunyuanFeedForward,
                                     .arithmetic = {.qk_norm = QkNorm::kHead, .norms_after_rope = true},
                                     .keys = kHunyuanKeys,
                                     .rope = {.fixed_alpha = true}};

constexpr Architecture kHunyuanMoe{.name = "hunyuan_v1_moe",
                                   .hf_class = "HunYuanMoEV1ForCausalLM",
                                   .hf_base_class = "HunYuanMoEV1Model",
                                   .model_type = "hunyuan_v1_moe",
                                   .gguf = "hunyuan-moe",
                                   .model_tensors = kModelTensors,
                                   .attention_tensors = kHunyuanAttention,
                                   .arithmetic = {.qk_norm = QkNorm::kHead, .norms_after_rope = true},
                                   .experts = &kHunyuanRules,
                                   .keys = kHunyuanKeys,
                                   .rope = {.fixed_alpha = true}};

}  // namespace kvs::inline model
