// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kSmolLm3Attention = pre_norm_attention(B::kAttention, B::kAttention);
constexpr auto kSmolLm3FeedForward = pre_norm_mlp(B::kFeedForward);

}  // namespace

constexpr Architecture kSmolLm3{.name = "smollm3",
                                .hf_class = "SmolLM3ForCausalLM",
                                .hf_base_class = "SmolLM3Model",
                                .model_type = "smollm3",
                                .gguf = "smollm3",
                                .model_tensors = kModelTensors,
                                .attention_tensors = kSmolLm3Attention,
                                .feed_forward_tensors = kSmolLm3FeedForward,
                                .unrotated = UnrotatedRule::kListed,
                                .gguf_interleaved = true,
                                .keys = {.attention_bias = "attention_bias",
                                         .mlp_bias = "mlp_bias",
                                         .kv_heads_default = 4,
                                         .context_default = 32768,
                                         .tied_head_default = true},
                                .rope = {.theta = 2e6}};

}  // namespace kvs::inline model
