// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kStarcoder2Attention =
    join(std::array{kBiasedInputNorm}, qkv(B::kAttention), std::array{o_proj(B::kAttention)});
constexpr std::array kStarcoder2FeedForward{
    kBiasedMiddleNorm,
    TensorSpec{kUp, "model.layers.{}.mlp.c_fc", "blk.{}.ffn_up", kFeedForward, kModel, B::kAttention},
    TensorSpec{kDown, "model.layers.{}.mlp.c_proj", "blk.{}.ffn_down", kModel, kFeedForward, B::kAttention}};

}  // namespace

constexpr Architecture kStarcoder2{
    .name = "starcoder2",
    .hf_class = "Starcoder2ForCausalLM",
    .hf_base_class = "Starcoder2Model",
    .model_type = "starcoder2",
    .gguf = "starcoder2",
    .model_tensors = kBiasedModelTensors,
    .attention_tensors = kStarcoder2Attention,
    .feed_forward_tensors = kStarcoder2FeedForward,
    .arithmetic = {.norm = NormKind::kLayer, .activation = Activation::kGeluTanh, .gated = false},
    .windows = WindowRule::kEveryLayer,
    .keys = {.norm_epsilon = "norm_epsilon",
             .norm_epsilon_default = 1e-5F,
             .attention_bias = "use_bias",
             .attention_bias_default = true,
             .kv_heads_default = 2,
             .context_default = 4096,
             .tied_head_default = true}};

}  // namespace kvs::inline model
