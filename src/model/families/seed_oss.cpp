// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kSeedAttention = pre_norm_attention(B::kAttention, B::kOutput);
constexpr auto kSeedFeedForward = join(std::array{kPostAttentionNorm}, gated_mlp(B::kFeedForward));

}  // namespace

constexpr Architecture kSeedOss{.name = "seed_oss",
                                .hf_class = "SeedOssForCausalLM",
                                .hf_base_class = "SeedOssModel",
                                .model_type = "seed_oss",
                                .gguf = "seed_oss",
                                .model_tensors = kModelTensors,
                                .attention_tensors = kSeedAttention,
                                .feed_forward_tensors = kSeedFeedForward,
                                .keys = {.attention_bias = "attention_bias",
                                         .attention_bias_default = true,
                                         .output_bias = "attention_out_bias",
                                         .mlp_bias = "mlp_bias",
                                         .head_dim_default = 128,
                                         .kv_heads_default = 8,
                                         .context_default = 524288}};

}  // namespace kvs::inline model
