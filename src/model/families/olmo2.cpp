// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kOlmo2Attention =
    join(qkv(B::kAttention), qk_norms(kQueryRows, kKeyRows), std::array{o_proj(B::kAttention), kAfterAttention});

}  // namespace

constexpr Architecture kOlmo2{.name = "olmo2",
                              .hf_class = "Olmo2ForCausalLM",
                              .hf_base_class = "Olmo2Model",
                              .model_type = "olmo2",
                              .gguf = "olmo2",
                              .model_tensors = kModelTensors,
                              .attention_tensors = kOlmo2Attention,
                              .feed_forward_tensors = kPostNormMlp,
                              .arithmetic = {.input_norms = false, .output_norms = true, .qk_norm = QkNorm::kRow},
                              .keys = {.norm_epsilon_default = 1e-5F, .attention_bias = "attention_bias"}};

// Olmo 2 with windows; RoPE's scaling holds for layers without one.
constexpr Architecture kOlmo3{
    .name = "olmo3",
    .hf_class = "Olmo3ForCausalLM",
    .hf_base_class = "Olmo3Model",
    .model_type = "olmo3",
    .gguf = "olmo2",
    .gguf_key = "attention.sliding_window",
    .model_tensors = kModelTensors,
    .attention_tensors = kOlmo2Attention,
    .feed_forward_tensors = kPostNormMlp,
    .arithmetic = {.input_norms = false, .output_norms = true, .qk_norm = QkNorm::kRow},
    .windows = WindowRule::kPattern,
    .gguf_windows = WindowRule::kPattern,
    .window_period = 4,
    .keys = {.norm_epsilon_default = 1e-5F, .attention_bias = "attention_bias", .window_default = 4096},
    .rope = {.theta = 5e5, .window_theta = 5e5, .window_theta_key = ""}};

}  // namespace kvs::inline model
