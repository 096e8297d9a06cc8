// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kInternLm3Attention = pre_norm_attention(B::kAttention, B::kOutput);
constexpr auto kInternLm3FeedForward = pre_norm_mlp(B::kFeedForward);

}  // namespace

// GGUF files of this family say "llama".
constexpr Architecture kInternLm3{.name = "internlm3",
                                  .hf_class = "InternLM3ForCausalLM",
                                  .hf_base_class = "InternLM3Model",
                                  .model_type = "internlm3",
                                  .model_tensors = kModelTensors,
                                  .attention_tensors = kInternLm3Attention,
                                  .feed_forward_tensors = kInternLm3FeedForward,
                                  .gguf_interleaved = true,
                                  .keys = {.attention_bias = "qkv_bias",
                                           .output_bias = "bias",
                                           .mlp_bias = "bias",
                                           .head_dim_default = 128,
                                           .context_default = 32768}};

}  // namespace kvs::inline model
