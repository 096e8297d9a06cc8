// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kGemma2Attention =
    join(std::array{kInputNorm}, qkv(B::kAttention), std::array{o_proj(B::kAttention), kAfterAttention});
constexpr auto kGemma3Attention = join(std::array{kInputNorm}, qkv(B::kAttention), qk_norms(kHeadDim, kHeadDim),
                                       std::array{o_proj(B::kAttention), kAfterAttention});
constexpr auto kGemmaFeedForward =
    join(std::array{kBeforeFeedForward}, gated_mlp(B::kNone), std::array{kAfterFeedForward});

constexpr Arithmetic kGemma2Arithmetic{
    .output_norms = true, .activation = Activation::kGeluTanh, .scaled_embeddings = true};
constexpr Arithmetic kGemma3Arithmetic{
    .output_norms = true, .qk_norm = QkNorm::kHead, .activation = Activation::kGeluTanh, .scaled_embeddings = true};

}  // namespace

constexpr Architecture kGemma2{.name = "gemma2",
                               .hf_class = "Gemma2ForCausalLM",
                               .hf_base_class = "Gemma2Model",
                               .model_type = "gemma2",
                               .gguf = "gemma2",
                               .model_tensors = kModelTensors,
                               .attention_tensors = kGemma2Attention,
                               .feed_forward_tensors = kGemmaFeedForward,
                               .arithmetic = kGemma2Arithmetic,
                               .windows = WindowRule::kPattern,
                               .gguf_windows = WindowRule::kPattern,
                               .window_period = 2,
                               .gguf_window_default = 4096,
                               .hf_norms_less_one = true,
                               .gguf_wide_scale_layers = 46,
                               .keys = {.activation = "hidden_activation",
                                        .attention_bias = "attention_bias",
                                        .attention_scalar = "query_pre_attn_scalar",
                                        .head_dim_default = 256,
                                        .kv_heads_default = 4,
                                        .context_default = 8192,
                                        .window_default = 4096,
                                        .tied_head_default = true,
                                        .attention_softcap = "attn_logit_softcapping",
                                        .logit_softcap = "final_logit_softcapping",
                                        .attention_softcap_default = 50,
                                        .logit_softcap_default = 30}};

constexpr Architecture kGemma3{.name = "gemma3",
                               .hf_class = "Gemma3ForCausalLM",
                               .hf_base_class = "Gemma3TextModel",
                               .model_type = "gemma3_text",
                               .gguf = "gemma3",
                               .model_tensors = kModelTensors,
                               .attention_tensors = kGemma3Attention,
                               .feed_forward_tensors = kGemmaFeedForward,
                               .arithmetic = kGemma3Arithmetic,
                               .windows = WindowRule::kPattern,
                               .gguf_windows = WindowRule::kPattern,
                               .window_period = 6,
                               .hf_norms_less_one = true,
                               .gguf_wide_scale_layers = 62,
                               .keys = {.activation = "hidden_activation",
                                        .attention_bias = "attention_bias",
                                        .window_pattern = "sliding_window_pattern",
                                        .attention_scalar = "query_pre_attn_scalar",
                                        .head_dim_default = 256,
                                        .kv_heads_default = 4,
                                        .query_heads_default = 8,
                                        .vocabulary_default = 262208,
                                        .context_default = 131072,
                                        .window_default = 4096,
                                        .tied_head_default = true,
                                        .logit_softcap = "final_logit_softcapping"},
                               .rope = {.theta = 1e6, .window_theta = 1e4}};

}  // namespace kvs::inline model
