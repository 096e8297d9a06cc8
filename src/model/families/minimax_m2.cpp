// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kMiniMaxAttention = pre_norm_attention(B::kNone, B::kNone, qk_norms(kQueryRows, kKeyRows));
constexpr auto kMiniMaxExperts = join(
    kBlockSparseExperts, std::array{with_other(router_bias("model.layers.{}.block_sparse_moe.e_score_correction_bias"),
                                               "model.layers.{}.mlp.e_score_correction_bias")});

ExpertLayers read_minimax(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.width = "intermediate_size",
                       .scores = ExpertsConfig::Scores::kSigmoid,
                       .count_default = 256,
                       .chosen_default = 8,
                       .width_default = 1536});
}

constexpr ExpertRules kMiniMaxRules{.read = read_minimax,
                                    .gguf_normalised = true,
                                    .keys = kExpertKeyNames,
                                    .tensors = kMiniMaxExperts,
                                    .gguf_scores = ExpertsConfig::Scores::kSigmoid};

}  // namespace

constexpr Architecture kMiniMaxM2{
    .name = "minimax_m2",
    .hf_class = "MiniMaxM2ForCausalLM",
    .hf_base_class = "MiniMaxM2Model",
    .model_type = "minimax_m2",
    .gguf = "minimax-m2",
    .model_tensors = kModelTensors,
    .attention_tensors = kMiniMaxAttention,
    .arithmetic = {.qk_norm = QkNorm::kRow},
    .experts = &kMiniMaxRules,
    .keys = {.head_dim_default = 128, .kv_heads_default = 8, .context_default = 196608},
    .rope = {.theta = 5e6, .share_key = "partial_rotary_factor", .channels_key = "rotary_dim"}};

}  // namespace kvs::inline model
