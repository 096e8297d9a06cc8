// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/recurrence.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr TensorSpec gated_query(TensorRole role) {
  return {.role = role,
          .hf = "model.layers.{}.self_attn.q_proj",
          .gguf = "blk.{}.attn_q",
          .rows = kQueryRows,
          .columns = kModel,
          .bias = B::kAttention,
          .hf_heads = kQueryHeads,
          .gguf_heads = kQueryHeads};
}
constexpr auto kGatedAttention =
    join(std::array{kInputNorm, gated_query(kQuery), gated_query(kOutputGate), k_proj(B::kAttention),
                    v_proj(B::kAttention), q_norm(kHeadDim), k_norm(kHeadDim), o_proj(B::kAttention)});
constexpr auto kQwen35FeedForward = join(std::array{kPostAttentionNorm}, gated_mlp(B::kNone));

constexpr std::array kQwen35Block{
    TensorSpec{kMixerTaps, "model.layers.{}.linear_attn.conv1d", "blk.{}.ssm_conv1d", kMixerChannels, kMixerKernel},
    by_value_head(kMixerDecay, "model.layers.{}.linear_attn.A_log", "blk.{}.ssm_a"),
    by_value_head(kMixerStepBias, "model.layers.{}.linear_attn.dt_bias", "blk.{}.ssm_dt.bias"),
    TensorSpec{kMixerNorm, "model.layers.{}.linear_attn.norm", "blk.{}.ssm_norm", kMixerHeadDim, kNone},
    TensorSpec{kMixerOutput, "model.layers.{}.linear_attn.out_proj", "blk.{}.ssm_out", kModel, kMixerValueRows}};

/// Qwen 3 Next: a key head's queries, keys, values and gates follow each other.
/// @param gguf_heads  kNone: part by part in GGUF
constexpr TensorSpec by_key_head(TensorRole role, std::string_view hf, std::string_view gguf, TensorAxis rows,
                                 TensorAxis gguf_heads = kMixerKeyHeads) {
  return {.role = role,
          .hf = hf,
          .gguf = gguf,
          .rows = rows,
          .columns = kModel,
          .hf_heads = kMixerKeyHeads,
          .gguf_heads = gguf_heads};
}
constexpr std::string_view kNextQkvz = "model.layers.{}.linear_attn.in_proj_qkvz",
                           kNextBa = "model.layers.{}.linear_attn.in_proj_ba";
constexpr std::array kNextStrengths{by_key_head(kMixerStrength, kNextBa, "blk.{}.ssm_ba", kMixerHeads),
                                    by_key_head(kMixerStep, kNextBa, "blk.{}.ssm_ba", kMixerHeads)};
constexpr auto kNextRecurrence =
    join(std::array{kInputNorm, by_key_head(kMixerQuery, kNextQkvz, "blk.{}.attn_qkv", kMixerKeyRows, kNone),
                    by_key_head(kMixerKey, kNextQkvz, "blk.{}.attn_qkv", kMixerKeyRows, kNone),
                    by_key_head(kMixerValue, kNextQkvz, "blk.{}.attn_qkv", kMixerValueRows, kNone),
                    by_key_head(kMixerGate, kNextQkvz, "blk.{}.attn_gate", kMixerValueRows, kNone)},
         kNextStrengths, kQwen35Block);
// In older GGUF files.
constexpr auto kNextJoined = join(std::array{kInputNorm, by_key_head(kMixerQuery, "", "blk.{}.ssm_in", kMixerKeyRows),
                                             by_key_head(kMixerKey, "", "blk.{}.ssm_in", kMixerKeyRows),
                                             by_key_head(kMixerValue, "", "blk.{}.ssm_in", kMixerValueRows),
                                             by_key_head(kMixerGate, "", "blk.{}.ssm_in", kMixerValueRows)},
                                  kNextStrengths, kQwen35Block);

constexpr std::string_view kQwen35Qkv = "model.layers.{}.linear_attn.in_proj_qkv";
constexpr auto kQwen35Recurrence = join(
    std::array{
        kInputNorm, TensorSpec{kMixerQuery, kQwen35Qkv, "blk.{}.attn_qkv", kMixerKeyRows, kModel},
        TensorSpec{kMixerKey, kQwen35Qkv, "blk.{}.attn_qkv", kMixerKeyRows, kModel},
        TensorSpec{kMixerValue, kQwen35Qkv, "blk.{}.attn_qkv", kMixerValueRows, kModel},
        TensorSpec{kMixerGate, "model.layers.{}.linear_attn.in_proj_z", "blk.{}.attn_gate", kMixerValueRows, kModel},
        TensorSpec{kMixerStrength, "model.layers.{}.linear_attn.in_proj_b", "blk.{}.ssm_beta", kMixerHeads, kModel},
        TensorSpec{kMixerStep, "model.layers.{}.linear_attn.in_proj_a", "blk.{}.ssm_alpha", kMixerHeads, kModel}},
    kQwen35Block);

constexpr RecurrenceRules kNextRules{.read = read_delta_net,
                                     .keys = kDeltaNetKeyNames,
                                     .tensors = kNextRecurrence,
                                     .read_gguf = read_gguf_delta_net,
                                     .gguf_joined = kNextJoined};
constexpr RecurrenceRules kQwen35Rules{.read = read_delta_net,
                                       .keys = kDeltaNetKeyNames,
                                       .tensors = kQwen35Recurrence,
                                       .read_gguf = read_gguf_tiled_delta_net};

constexpr auto kNextExpertTensors =
    join(std::array{kPostAttentionNorm, router("model.layers.{}.mlp.gate")}, kExpertsOfMlp, kSharedExpert);

ExpertLayers read_next_experts(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"num_experts", ""},
                       .shared_width = "shared_expert_intermediate_size",
                       .normalised = "norm_topk_prob",
                       .step = "decoder_sparse_step",
                       .dense = "mlp_only_layers",
                       .normalised_default = true,
                       .count_default = 512,
                       .chosen_default = 10,
                       .width_default = 512,
                       .shared_width_default = 512});
}
ExpertLayers read_qwen3_5_experts(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"num_experts", ""},
                       .shared_width = "shared_expert_intermediate_size",
                       .count_default = 256,
                       .chosen_default = 8,
                       .width_default = 512,
                       .shared_width_default = 512});
}
constexpr ExpertRules kNextExperts{
    .read = read_next_experts, .gguf_normalised = true, .keys = kExpertKeyNames, .tensors = kNextExpertTensors};
constexpr ExpertRules kQwen35Experts{
    .read = read_qwen3_5_experts, .gguf_normalised = true, .keys = kExpertKeyNames, .tensors = kNextExpertTensors};

constexpr RopeDefaults kQuarterRotated{.share_key = "partial_rotary_factor", .share = 0.25};
constexpr ConfigKeys next_keys(std::size_t kv_heads) {
  return {.attention_bias = "attention_bias",
          .head_dim_default = 256,
          .kv_heads_default = kv_heads,
          .context_default = 32768};
}

}  // namespace

constexpr Architecture kQwen3Next{.name = "qwen3_next",
                                  .hf_class = "Qwen3NextForCausalLM",
                                  .hf_base_class = "Qwen3NextModel",
                                  .model_type = "qwen3_next",
                                  .gguf = "qwen3next",
                                  .model_tensors = kModelTensors,
                                  .attention_tensors = kGatedAttention,
                                  .feed_forward_tensors = kQwen35FeedForward,
                                  .arithmetic = {.qk_norm = QkNorm::kHead},
                                  .hf_norms_less_one = true,
                                  .experts = &kNextExperts,
                                  .recurrence = &kNextRules,
                                  .keys = next_keys(2),
                                  .rope = kQuarterRotated};

// Text gives the three positions of its RoPE one value, so the sections of the chunks (mrope_section) have no effect.
constexpr Architecture kQwen35{.name = "qwen3_5",
                               .hf_class = "Qwen3_5ForCausalLM",
                               .hf_base_class = "Qwen3_5TextModel",
                               .model_type = "qwen3_5_text",
                               .gguf = "qwen35",
                               .model_tensors = kModelTensors,
                               .attention_tensors = kGatedAttention,
                               .feed_forward_tensors = kQwen35FeedForward,
                               .arithmetic = {.qk_norm = QkNorm::kHead},
                               .hf_norms_less_one = true,
                               .hf_composite_names = true,
                               .recurrence = &kQwen35Rules,
                               .keys = next_keys(4),
                               .rope = kQuarterRotated};

constexpr Architecture kQwen35Moe{.name = "qwen3_5_moe",
                                  .hf_class = "Qwen3_5MoeForCausalLM",
                                  .hf_base_class = "Qwen3_5MoeTextModel",
                                  .model_type = "qwen3_5_moe_text",
                                  .gguf = "qwen35moe",
                                  .model_tensors = kModelTensors,
                                  .attention_tensors = kGatedAttention,
                                  .feed_forward_tensors = kQwen35FeedForward,
                                  .arithmetic = {.qk_norm = QkNorm::kHead},
                                  .hf_norms_less_one = true,
                                  .hf_composite_names = true,
                                  .experts = &kQwen35Experts,
                                  .recurrence = &kQwen35Rules,
                                  .keys = next_keys(2),
                                  .rope = kQuarterRotated};

}  // namespace kvs::inline model
