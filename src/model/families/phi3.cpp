// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr std::string_view kPhi3Qkv = "model.layers.{}.self_attn.qkv_proj",
                           kPhi3GateUp = "model.layers.{}.mlp.gate_up_proj";
constexpr std::array kPhi3Attention{kInputNorm, TensorSpec{kQuery, kPhi3Qkv, "blk.{}.attn_qkv", kQueryRows, kModel},
                                    TensorSpec{kKey, kPhi3Qkv, "blk.{}.attn_qkv", kKeyRows, kModel},
                                    TensorSpec{kValue, kPhi3Qkv, "blk.{}.attn_qkv", kKeyRows, kModel},
                                    o_proj(B::kNone)};
constexpr std::array kPhi3FeedForward{
    kMiddleNorm, TensorSpec{kGate, kPhi3GateUp, "blk.{}.ffn_up", kFeedForward, kModel},
    TensorSpec{kUp, kPhi3GateUp, "blk.{}.ffn_up", kFeedForward, kModel}, down_proj(B::kNone)};

}  // namespace

constexpr Architecture kPhi3{
    .name = "phi3",
    .hf_class = "Phi3ForCausalLM",
    .hf_base_class = "Phi3Model",
    .model_type = "phi3",
    .gguf = "phi3",
    .model_tensors = kModelTensors,
    .attention_tensors = kPhi3Attention,
    .feed_forward_tensors = kPhi3FeedForward,
    .windows = WindowRule::kEveryLayer,
    .gguf_windows = WindowRule::kEveryLayer,
    .keys = {.norm_epsilon_default = 1e-5F, .context_default = 4096},
    .rope = {.share_key = "partial_rotary_factor", .original_context = 4096, .su_is_longrope = true}};

}  // namespace kvs::inline model
