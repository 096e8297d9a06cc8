// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr std::array kGptNeoxModel{
    TensorSpec{kEmbedding, "gpt_neox.embed_in", "token_embd", kVocabulary, kModel},
    TensorSpec{kFinalNorm, "gpt_neox.final_layer_norm", "output_norm", kModel, kNone, B::kAlways},
    TensorSpec{.role = kHead,
               .hf = "embed_out",
               .gguf = "output",
               .rows = kVocabulary,
               .columns = kModel,
               .hf_other = "lm_head.weight"}};
constexpr TensorSpec by_head(TensorRole role, TensorAxis rows) {
  return {.role = role,
          .hf = "gpt_neox.layers.{}.attention.query_key_value",
          .gguf = "blk.{}.attn_qkv",
          .rows = rows,
          .columns = kModel,
          .bias = B::kAttention,
          .hf_heads = kQueryHeads};
}
constexpr std::array kGptNeoxAttention{
    TensorSpec{kAttentionNorm, "gpt_neox.layers.{}.input_layernorm", "blk.{}.attn_norm", kModel, kNone, B::kAlways},
    by_head(kQuery, kQueryRows), by_head(kKey, kKeyRows), by_head(kValue, kKeyRows),
    TensorSpec{kOutput, "gpt_neox.layers.{}.attention.dense", "blk.{}.attn_output", kModel, kQueryRows, B::kAttention}};
constexpr std::array kGptNeoxFeedForward{
    TensorSpec{kFeedForwardNorm, "gpt_neox.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", kModel, kNone,
               B::kAlways},
    TensorSpec{kUp, "gpt_neox.layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up", kFeedForward, kModel, B::kAlways},
    TensorSpec{kDown, "gpt_neox.layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down", kModel, kFeedForward, B::kAlways}};

}  // namespace

constexpr Architecture kGptNeox{.name = "gpt_neox",
                                .hf_class = "GPTNeoXForCausalLM",
                                .hf_base_class = "GPTNeoXModel",
                                .model_type = "gpt_neox",
                                .gguf = "gptneox",
                                .model_tensors = kGptNeoxModel,
                                .attention_tensors = kGptNeoxAttention,
                                .feed_forward_tensors = kGptNeoxFeedForward,
                                .arithmetic = {.norm = NormKind::kLayer,
                                               .activation = Activation::kGeluErf,
                                               .gated = false,
                                               .parallel_residual = true},
                                .keys = {.norm_epsilon = "layer_norm_eps",
                                         .norm_epsilon_default = 1e-5F,
                                         .kv_heads = "",
                                         .attention_bias = "attention_bias",
                                         .attention_bias_default = true,
                                         .parallel_residual = "use_parallel_residual"},
                                .rope = {.theta_key = "rotary_emb_base", .share_key = "rotary_pct", .share = 0.25}};

}  // namespace kvs::inline model
