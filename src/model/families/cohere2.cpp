// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kCohere2Attention = pre_norm_attention(B::kAttention, B::kAttention);
constexpr auto kCohere2FeedForward = gated_mlp(B::kNone);

}  // namespace

// The feed-forward block reads the attention's normalised input.
constexpr Architecture kCohere2{.name = "cohere2",
                                .hf_class = "Cohere2ForCausalLM",
                                .hf_base_class = "Cohere2Model",
                                .model_type = "cohere2",
                                .gguf = "cohere2",
                                .model_tensors = kModelTensors,
                                .attention_tensors = kCohere2Attention,
                                .feed_forward_tensors = kCohere2FeedForward,
                                .arithmetic = {.norm = NormKind::kLayer, .parallel_residual = true},
                                .windows = WindowRule::kPattern,
                                .gguf_windows = WindowRule::kPattern,
                                .window_period = 4,
                                .unrotated = UnrotatedRule::kFullLayers,
                                .gguf_interleaved = true,
                                .hf_interleaved = true,
                                .keys = {.norm_epsilon = "layer_norm_eps",
                                         .norm_epsilon_default = 1e-5F,
                                         .attention_bias = "attention_bias",
                                         .logit_scale = "logit_scale",
                                         .logit_scale_default = 0.0625F,
                                         .window_pattern = "sliding_window_pattern",
                                         .context_default = 8192,
                                         .window_default = 4096,
                                         .tied_head_default = true}};

}  // namespace kvs::inline model
