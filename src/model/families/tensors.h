// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "model/architecture.h"

/// Tensors with the names of most families, for the lists of a family.
namespace kvs::tensors {

using enum TensorRole;
using enum TensorAxis;

/// Concatenates lists of tensors, or of keys.
template <class T, std::size_t... Sizes>
constexpr std::array<T, (Sizes + ...)> join(const std::array<T, Sizes>&... lists) {
  std::array<T, (Sizes + ...)> all{};
  auto* end = all.begin();
  ((end = std::ranges::copy(lists, end).out), ...);
  return all;
}

inline constexpr TensorSpec kTokens{kEmbedding, "model.embed_tokens", "token_embd", kVocabulary, kModel};
inline constexpr TensorSpec kLastNorm{kFinalNorm, "model.norm", "output_norm", kModel, kNone};
inline constexpr TensorSpec kLmHead{kHead, "lm_head", "output", kVocabulary, kModel};
inline constexpr TensorSpec kInputNorm{kAttentionNorm, "model.layers.{}.input_layernorm", "blk.{}.attn_norm", kModel,
                                       kNone};
constexpr TensorSpec q_proj(BiasGroup bias) {
  return {kQuery, "model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", kQueryRows, kModel, bias};
}
inline constexpr TensorSpec k_proj(BiasGroup bias) {
  return {kKey, "model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", kKeyRows, kModel, bias};
}
constexpr TensorSpec v_proj(BiasGroup bias) {
  return {kValue, "model.layers.{}.self_attn.v_proj", "blk.{}.attn_v", kKeyRows, kModel, bias};
}
constexpr TensorSpec o_proj(BiasGroup bias) {
  return {kOutput, "model.layers.{}.self_attn.o_proj", "blk.{}.attn_output", kModel, kQueryRows, bias};
}
/// @param rows  kHeadDim: one gain shared by all heads; otherwise one gain per channel of the whole row
constexpr TensorSpec q_norm(TensorAxis rows) {
  return {kQueryNorm, "model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm", rows, kNone};
}
inline constexpr TensorSpec k_norm(TensorAxis rows) {
  return {kKeyNorm, "model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm", rows, kNone};
}
/// The second norm of a block pair: Llama's name of the feed-forward block's input norm.
inline constexpr TensorSpec kMiddleNorm{kFeedForwardNorm, "model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm",
                                        kModel, kNone};
/// That norm, by its name in GGUF files of some families.
inline constexpr TensorSpec kPostAttentionNorm{kFeedForwardNorm, "model.layers.{}.post_attention_layernorm",
                                               "blk.{}.post_attention_norm", kModel, kNone};
inline constexpr TensorSpec kAfterAttention{kAttentionOutputNorm, "model.layers.{}.post_attention_layernorm",
                                            "blk.{}.post_attention_norm", kModel, kNone};
inline constexpr TensorSpec kBeforeFeedForward{kFeedForwardNorm, "model.layers.{}.pre_feedforward_layernorm",
                                               "blk.{}.ffn_norm", kModel, kNone};
inline constexpr TensorSpec kAfterFeedForward{kFeedForwardOutputNorm, "model.layers.{}.post_feedforward_layernorm",
                                              "blk.{}.post_ffw_norm", kModel, kNone};
constexpr TensorSpec gate_proj(BiasGroup bias) {
  return {kGate, "model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate", kFeedForward, kModel, bias};
}
constexpr TensorSpec up_proj(BiasGroup bias) {
  return {kUp, "model.layers.{}.mlp.up_proj", "blk.{}.ffn_up", kFeedForward, kModel, bias};
}
constexpr TensorSpec down_proj(BiasGroup bias) {
  return {kDown, "model.layers.{}.mlp.down_proj", "blk.{}.ffn_down", kModel, kFeedForward, bias};
}

inline constexpr std::array kModelTensors{kTokens, kLastNorm, kLmHead};

/// @param bias  of the projections of queries, keys and values
constexpr std::array<TensorSpec, 3> qkv(BiasGroup bias) { return {q_proj(bias), k_proj(bias), v_proj(bias)}; }
/// The attention block with a norm of its input, as in Llama.
/// @param norms  of queries and keys, or no argument
template <class... Norms>
constexpr auto pre_norm_attention(BiasGroup qkv_bias, BiasGroup output_bias, const Norms&... norms) {
  return join(std::array{kInputNorm}, qkv(qkv_bias), norms..., std::array{o_proj(output_bias)});
}
constexpr std::array<TensorSpec, 2> qk_norms(TensorAxis query_rows, TensorAxis key_rows) {
  return {q_norm(query_rows), k_norm(key_rows)};
}
constexpr std::array<TensorSpec, 3> gated_mlp(BiasGroup bias) {
  return {gate_proj(bias), up_proj(bias), down_proj(bias)};
}
/// The feed-forward block with a norm of its input, as in Llama.
constexpr auto pre_norm_mlp(BiasGroup bias) { return join(std::array{kMiddleNorm}, gated_mlp(bias)); }
/// The feed-forward block with a norm of its output, as in OLMo 2.
inline constexpr auto kPostNormMlp = join(gated_mlp(BiasGroup::kNone), std::array{kAfterFeedForward});

// LayerNorms with a bias.
inline constexpr TensorSpec kBiasedInputNorm{
    kAttentionNorm, "model.layers.{}.input_layernorm", "blk.{}.attn_norm", kModel, kNone, BiasGroup::kAlways};
inline constexpr TensorSpec kBiasedMiddleNorm{
    kFeedForwardNorm, "model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", kModel, kNone, BiasGroup::kAlways};
inline constexpr std::array kBiasedModelTensors{
    kTokens, TensorSpec{kFinalNorm, "model.norm", "output_norm", kModel, kNone, BiasGroup::kAlways}, kLmHead};

/// @param hf  with its ending
constexpr TensorSpec router_bias(std::string_view hf) {
  return {.role = kRouterBias,
          .hf = hf,
          .gguf = "blk.{}.exp_probs_b",
          .rows = kExperts,
          .columns = kNone,
          .hf_ending = "",
          .gguf_ending = ".bias"};
}
/// Qwen's shared expert, whose output is scaled.
inline constexpr std::array kSharedExpert{
    TensorSpec{kSharedScale, "model.layers.{}.mlp.shared_expert_gate", "blk.{}.ffn_gate_inp_shexp", kOne, kModel},
    TensorSpec{kSharedGate, "model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp", kSharedWidth,
               kModel},
    TensorSpec{kSharedUp, "model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp", kSharedWidth, kModel},
    TensorSpec{kSharedDown, "model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp", kModel,
               kSharedWidth}};
constexpr std::array<TensorSpec, 3> shared_experts(BiasGroup bias) {
  return {TensorSpec{kSharedGate, "model.layers.{}.mlp.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp", kSharedWidth,
                     kModel, bias},
          TensorSpec{kSharedUp, "model.layers.{}.mlp.shared_experts.up_proj", "blk.{}.ffn_up_shexp", kSharedWidth,
                     kModel, bias},
          TensorSpec{kSharedDown, "model.layers.{}.mlp.shared_experts.down_proj", "blk.{}.ffn_down_shexp", kModel,
                     kSharedWidth, bias}};
}
/// A vector of a recurrent block's value heads. @param hf, gguf  with their endings
constexpr TensorSpec by_value_head(TensorRole role, std::string_view hf, std::string_view gguf) {
  return {
      .role = role, .hf = hf, .gguf = gguf, .rows = kMixerHeads, .columns = kNone, .hf_ending = "", .gguf_ending = ""};
}
/// Names of the tensors of a Mamba-2 block in Hugging Face files, without their endings.
struct Mamba2Names {
  std::string_view input, taps, decay, step_bias, skip, norm, output;
};
constexpr std::array<TensorSpec, 11> mamba2(const Mamba2Names& hf) {
  return {TensorSpec{kMixerGate, hf.input, "blk.{}.ssm_in", kMixerValueRows, kModel},
          TensorSpec{kMixerValue, hf.input, "blk.{}.ssm_in", kMixerValueRows, kModel},
          TensorSpec{kMixerKey, hf.input, "blk.{}.ssm_in", kMixerKeyRows, kModel},
          TensorSpec{kMixerQuery, hf.input, "blk.{}.ssm_in", kMixerKeyRows, kModel},
          TensorSpec{kMixerStep, hf.input, "blk.{}.ssm_in", kMixerHeads, kModel},
          TensorSpec{kMixerTaps, hf.taps, "blk.{}.ssm_conv1d", kMixerChannels, kMixerKernel, BiasGroup::kConvolution},
          by_value_head(kMixerDecay, hf.decay, "blk.{}.ssm_a"),
          by_value_head(kMixerStepBias, hf.step_bias, "blk.{}.ssm_dt.bias"),
          by_value_head(kMixerSkip, hf.skip, "blk.{}.ssm_d"),
          TensorSpec{kMixerNorm, hf.norm, "blk.{}.ssm_norm", kMixerValueRows, kNone},
          TensorSpec{kMixerOutput, hf.output, "blk.{}.ssm_out", kModel, kMixerValueRows}};
}
constexpr TensorSpec router(std::string_view hf) { return {kRouter, hf, "blk.{}.ffn_gate_inp", kExperts, kModel}; }
/// A tensor that holds all experts of a layer, whose name in Hugging Face files has no ending.
constexpr TensorSpec of_all_experts(TensorRole role, std::string_view hf, std::string_view gguf, TensorAxis rows,
                                    TensorAxis columns) {
  return {.role = role, .hf = hf, .gguf = gguf, .rows = rows, .columns = columns, .hf_ending = ""};
}
/// @param gate, up, down  names of an expert's tensors in Hugging Face files, one for each expert
constexpr std::array<TensorSpec, 3> experts(std::string_view gate, std::string_view up, std::string_view down) {
  return {TensorSpec{kExpertGate, gate, "blk.{}.ffn_gate_exps", kExpertWidth, kModel},
          TensorSpec{kExpertUp, up, "blk.{}.ffn_up_exps", kExpertWidth, kModel},
          TensorSpec{kExpertDown, down, "blk.{}.ffn_down_exps", kModel, kExpertWidth}};
}
/// The names that most families have: experts below `mlp`, with a router.
inline constexpr auto kExpertsOfMlp =
    experts("model.layers.{}.mlp.experts.{}.gate_proj", "model.layers.{}.mlp.experts.{}.up_proj",
            "model.layers.{}.mlp.experts.{}.down_proj");
inline constexpr auto kMlpExperts = join(std::array{kMiddleNorm, router("model.layers.{}.mlp.gate")}, kExpertsOfMlp);
constexpr TensorSpec with_other(TensorSpec spec, std::string_view hf_other) {
  spec.hf_other = hf_other;
  return spec;
}
/// Mixtral's names of a router and experts.
inline constexpr auto kBlockSparseExperts =
    join(std::array{kMiddleNorm,
                    with_other(router("model.layers.{}.block_sparse_moe.gate"), "model.layers.{}.mlp.gate.weight")},
         experts("model.layers.{}.block_sparse_moe.experts.{}.w1", "model.layers.{}.block_sparse_moe.experts.{}.w3",
                 "model.layers.{}.block_sparse_moe.experts.{}.w2"));

constexpr TensorSpec granite_expert(TensorRole role, std::string_view gguf) {
  return with_other({role, "model.layers.{}.block_sparse_moe.input_linear", gguf, kExpertWidth, kModel},
                    "model.layers.{}.block_sparse_moe.experts.gate_up_proj");
}
/// Granite's experts with a shared one, which only some models have.
inline constexpr std::array kGraniteExperts{
    kMiddleNorm,
    with_other(router("model.layers.{}.block_sparse_moe.router.layer"),
               "model.layers.{}.block_sparse_moe.router.weight"),
    granite_expert(kExpertGate, "blk.{}.ffn_gate_exps"),
    granite_expert(kExpertUp, "blk.{}.ffn_up_exps"),
    with_other(
        {kExpertDown, "model.layers.{}.block_sparse_moe.output_linear", "blk.{}.ffn_down_exps", kModel, kExpertWidth},
        "model.layers.{}.block_sparse_moe.experts.down_proj"),
    TensorSpec{kSharedGate, "model.layers.{}.shared_mlp.input_linear", "blk.{}.ffn_gate_shexp", kSharedWidth, kModel},
    TensorSpec{kSharedUp, "model.layers.{}.shared_mlp.input_linear", "blk.{}.ffn_up_shexp", kSharedWidth, kModel},
    TensorSpec{kSharedDown, "model.layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down_shexp", kModel, kSharedWidth}};

}  // namespace kvs::tensors
