// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

// A gain for each head.
constexpr std::array kStableLmNorms{
    TensorSpec{kQueryNorm, "model.layers.{}.self_attn.q_layernorm.norms.{}", "blk.{}.attn_q_norm", kHeadDim, kNone},
    TensorSpec{kKeyNorm, "model.layers.{}.self_attn.k_layernorm.norms.{}", "blk.{}.attn_k_norm", kHeadDim, kNone}};
constexpr auto kStableLmAttention =
    join(std::array{kBiasedInputNorm}, qkv(B::kAttention), kStableLmNorms, std::array{o_proj(B::kNone)});

constexpr TensorSpec sequential(TensorSpec spec) {
  spec.sequential_only = true;
  return spec;
}
constexpr auto kStableLmFeedForward = join(std::array{sequential(kBiasedMiddleNorm)}, gated_mlp(B::kNone));

}  // namespace

constexpr Architecture kStableLm{.name = "stablelm",
                                 .hf_class = "StableLmForCausalLM",
                                 .hf_base_class = "StableLmModel",
                                 .model_type = "stablelm",
                                 .gguf = "stablelm",
                                 .model_tensors = kBiasedModelTensors,
                                 .attention_tensors = kStableLmAttention,
                                 .feed_forward_tensors = kStableLmFeedForward,
                                 .arithmetic = {.norm = NormKind::kLayer, .qk_norm = QkNorm::kHead},
                                 .keys = {.norm_epsilon = "layer_norm_eps",
                                          .norm_epsilon_default = 1e-5F,
                                          .attention_bias = "use_qkv_bias",
                                          .qk_norm = "qk_layernorm",
                                          .parallel_residual = "use_parallel_residual",
                                          .kv_heads_default = 32,
                                          .context_default = 4096},
                                 .rope = {.share_key = "partial_rotary_factor", .share = 0.25}};

}  // namespace kvs::inline model
