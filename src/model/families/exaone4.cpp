// SPDX-License-Identifier: Apache-2.0
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kExaone4Attention =
    join(qkv(B::kNone), qk_norms(kHeadDim, kHeadDim), std::array{o_proj(B::kNone), kAfterAttention});

}  // namespace

constexpr Architecture kExaone4{.name = "exaone4",
                                .hf_class = "Exaone4ForCausalLM",
                                .hf_base_class = "Exaone4Model",
                                .model_type = "exaone4",
                                .gguf = "exaone4",
                                .model_tensors = kModelTensors,
                                .attention_tensors = kExaone4Attention,
                                .feed_forward_tensors = kPostNormMlp,
                                .arithmetic = {.input_norms = false, .output_norms = true, .qk_norm = QkNorm::kHead},
                                .windows = WindowRule::kPattern,
                                .gguf_windows = WindowRule::kPattern,
                                .window_period = 4,
                                .unrotated = UnrotatedRule::kFullIfWindowed,
                                .keys = {.norm_epsilon_default = 1e-5F,
                                         .window_pattern = "sliding_window_pattern",
                                         .kv_heads_default = 32,
                                         .window_default = 4096}};

}  // namespace kvs::inline model
