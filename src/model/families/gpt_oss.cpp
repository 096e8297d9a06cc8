// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kGptOssAttention = join(pre_norm_attention(B::kAttention, B::kAttention),
                                       std::array{TensorSpec{.role = kSinks,
                                                             .hf = "model.layers.{}.self_attn.sinks",
                                                             .gguf = "blk.{}.attn_sinks",
                                                             .rows = kQueryHeads,
                                                             .columns = kNone,
                                                             .hf_ending = ""}});

/// Rows of gate and up alternate in one tensor of Hugging Face files.
constexpr TensorSpec gpt_oss_expert(TensorRole role, std::string_view hf, std::string_view gguf, TensorAxis rows,
                                    TensorAxis columns, bool alternating) {
  return {.role = role,
          .hf = hf,
          .gguf = gguf,
          .rows = rows,
          .columns = columns,
          .bias = B::kAlways,
          .hf_ending = "",
          .hf_transposed = true,
          .hf_bias_ending = "_bias",
          .alternating = alternating};
}

constexpr std::string_view kGptOssGateUp = "model.layers.{}.mlp.experts.gate_up_proj";
constexpr std::array kGptOssExperts{
    kPostAttentionNorm,
    TensorSpec{kRouter, "model.layers.{}.mlp.router", "blk.{}.ffn_gate_inp", kExperts, kModel, B::kAlways},
    gpt_oss_expert(kExpertGate, kGptOssGateUp, "blk.{}.ffn_gate_exps", kExpertWidth, kModel, true),
    gpt_oss_expert(kExpertUp, kGptOssGateUp, "blk.{}.ffn_up_exps", kExpertWidth, kModel, true),
    gpt_oss_expert(kExpertDown, "model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps", kModel, kExpertWidth,
                   false)};

// The weights are the softmax over the chosen experts, which are those over all experts divided by their sum.
ExpertLayers read_gpt_oss(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.width = "intermediate_size",
                       .clamped = true,
                       .count_default = 128,
                       .chosen_default = 4,
                       .width_default = 2880});
}

constexpr ExpertRules kGptOssRules{.read = read_gpt_oss,
                                   .gguf_normalised = true,
                                   .keys = kExpertKeyNames,
                                   .tensors = kGptOssExperts,
                                   .gguf_clamp = {.alpha = 1.702F, .limit = 7}};

}  // namespace

constexpr Architecture kGptOss{
    .name = "gpt_oss",
    .hf_class = "GptOssForCausalLM",
    .hf_base_class = "GptOssModel",
    .model_type = "gpt_oss",
    .gguf = "gpt-oss",
    .model_tensors = kModelTensors,
    .attention_tensors = kGptOssAttention,
    .windows = WindowRule::kPattern,
    .gguf_windows = WindowRule::kPattern,
    .window_period = 2,
    .experts = &kGptOssRules,
    .keys = {.norm_epsilon_default = 1e-5F,
             .attention_bias = "attention_bias",
             .attention_bias_default = true,
             .sinks = true,
             .head_dim_default = 64,
             .kv_heads_default = 8,
             .query_heads_default = 64,
             .context_default = 131072,
             .window_default = 128},
    .rope = {.theta = 150000,
             .gguf_truncates = false,
             .unsaid = R"({"rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1, "truncate": false,
                          "original_max_position_embeddings": 4096})"}};

}  // namespace kvs::inline model
