// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kErnieAttention = pre_norm_attention(B::kAttention, B::kAttention);
constexpr auto kErnieFeedForward = pre_norm_mlp(B::kAttention);

constexpr auto kErnieExperts =
    join(kMlpExperts,
         std::array{with_other(router_bias("model.layers.{}.mlp.moe_statics.e_score_correction_bias"),
                               "model.layers.{}.mlp.gate.moe_statics.e_score_correction_bias")},
         shared_experts(B::kAttention));
constexpr std::array kErnieMoeModelTensors{kTokens, kLastNorm,
                                           TensorSpec{kHead, "lm_head", "output", kVocabulary, kModel, B::kAttention}};

ExpertLayers read_ernie(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"moe_num_experts", "num_experts"},
                       .chosen = {"moe_k", "num_experts_per_tok"},
                       .shared_count = "moe_num_shared_experts",
                       .least_sum = "moe_norm_min",
                       .step = "moe_layer_interval",
                       .first = "moe_layer_start_index",
                       .last = "moe_layer_end_index",
                       .first_default = 1,
                       .shared_count_default = 2,
                       .count_default = 64,
                       .chosen_default = 6,
                       .width_default = 1536});
}

constexpr ExpertRules kErnieRules{
    .read = read_ernie, .gguf_normalised = true, .keys = kExpertKeyNames, .tensors = kErnieExperts};

}  // namespace

constexpr Architecture kErnie45{.name = "ernie4_5",
                                .hf_class = "Ernie4_5ForCausalLM",
                                .hf_base_class = "Ernie4_5Model",
                                .model_type = "ernie4_5",
                                .gguf = "ernie4_5",
                                .model_tensors = kModelTensors,
                                .attention_tensors = kErnieAttention,
                                .feed_forward_tensors = kErnieFeedForward,
                                .gguf_interleaved = true,
                                .hf_interleaved = true,
                                .keys = {.norm_epsilon_default = 1e-5F,
                                         .attention_bias = "use_bias",
                                         .head_dim_default = 128,
                                         .kv_heads_default = 2,
                                         .context_default = 131072,
                                         .tied_head_default = true},
                                .rope = {.theta = 5e5}};

constexpr Architecture kErnie45Moe{.name = "ernie4_5_moe",
                                   .hf_class = "Ernie4_5_MoeForCausalLM",
                                   .hf_base_class = "Ernie4_5_MoeModel",
                                   .model_type = "ernie4_5_moe",
                                   .gguf = "ernie4_5-moe",
                                   .model_tensors = kErnieMoeModelTensors,
                                   .attention_tensors = kErnieAttention,
                                   .feed_forward_tensors = kErnieFeedForward,
                                   .gguf_interleaved = true,
                                   .hf_interleaved = true,
                                   .experts = &kErnieRules,
                                   .keys = {.norm_epsilon_default = 1e-5F,
                                            .attention_bias = "use_bias",
                                            .kv_heads_default = 4,
                                            .context_default = 131072,
                                            .tied_head_default = true},
                                   .rope = {.theta = 5e5}};

}  // namespace kvs::inline model
