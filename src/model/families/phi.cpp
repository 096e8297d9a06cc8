// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr std::array kPhiModel{
    kTokens, TensorSpec{kFinalNorm, "model.final_layernorm", "output_norm", kModel, kNone, B::kAlways},
    TensorSpec{kHead, "lm_head", "output", kVocabulary, kModel, B::kAlways}};
constexpr auto kPhiAttention = join(std::array{kBiasedInputNorm}, qkv(B::kAlways),
                                    std::array{TensorSpec{kQueryNorm, "model.layers.{}.self_attn.q_layernorm",
                                                          "blk.{}.attn_q_norm", kHeadDim, kNone, B::kAlways},
                                               TensorSpec{kKeyNorm, "model.layers.{}.self_attn.k_layernorm",
                                                          "blk.{}.attn_k_norm", kHeadDim, kNone, B::kAlways},
                                               TensorSpec{kOutput, "model.layers.{}.self_attn.dense",
                                                          "blk.{}.attn_output", kModel, kQueryRows, B::kAlways}});
constexpr std::array kPhiFeedForward{
    TensorSpec{kUp, "model.layers.{}.mlp.fc1", "blk.{}.ffn_up", kFeedForward, kModel, B::kAlways},
    TensorSpec{kDown, "model.layers.{}.mlp.fc2", "blk.{}.ffn_down", kModel, kFeedForward, B::kAlways}};

}  // namespace

// The feed-forward block reads the attention's normalised input.
constexpr Architecture kPhi{
    .name = "phi",
    .hf_class = "PhiForCausalLM",
    .hf_base_class = "PhiModel",
    .model_type = "phi",
    .gguf = "phi2",
    .model_tensors = kPhiModel,
    .attention_tensors = kPhiAttention,
    .feed_forward_tensors = kPhiFeedForward,
    .arithmetic = {.norm = NormKind::kLayer,
                   .qk_norm = QkNorm::kHead,
                   .activation = Activation::kGeluTanh,
                   .gated = false,
                   .parallel_residual = true},
    .keys = {.norm_epsilon = "layer_norm_eps", .norm_epsilon_default = 1e-5F, .qk_norm = "qk_layernorm"},
    .rope = {.share_key = "partial_rotary_factor", .share = 0.5}};

}  // namespace kvs::inline model
