// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kQwen2Attention = pre_norm_attention(B::kAlways, B::kNone);
constexpr auto kQwen3Attention = pre_norm_attention(B::kAttention, B::kAttention, qk_norms(kHeadDim, kHeadDim));
constexpr auto kQwenFeedForward = pre_norm_mlp(B::kNone);

constexpr auto kQwen2MoeAttention = pre_norm_attention(B::kAttention, B::kNone);
constexpr auto kQwen2MoeExperts = join(kMlpExperts, kSharedExpert);

/// Transformers 5 writes these tensors transposed, or not.
constexpr TensorSpec either_way(TensorSpec spec) {
  spec.hf_transposed = spec.hf_either_way = true;
  return spec;
}
constexpr std::string_view kQwen3VlGateUp = "model.layers.{}.mlp.experts.gate_up_proj";
constexpr auto kQwen3VlExperts = join(
    std::array{kMiddleNorm, router("model.layers.{}.mlp.gate")},
    std::array{either_way(of_all_experts(kExpertGate, kQwen3VlGateUp, "blk.{}.ffn_gate_exps", kExpertWidth, kModel)),
               either_way(of_all_experts(kExpertUp, kQwen3VlGateUp, "blk.{}.ffn_up_exps", kExpertWidth, kModel)),
               either_way(of_all_experts(kExpertDown, "model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps",
                                         kModel, kExpertWidth))});

ExpertLayers read_qwen2_moe(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"num_experts", ""},
                       .shared_width = "shared_expert_intermediate_size",
                       .normalised = "norm_topk_prob",
                       .step = "decoder_sparse_step",
                       .dense = "mlp_only_layers",
                       .count_default = 60,
                       .chosen_default = 4,
                       .width_default = 1408,
                       .shared_width_default = 5632});
}
ExpertLayers read_qwen3_moe(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.normalised = "norm_topk_prob",
                       .step = "decoder_sparse_step",
                       .dense = "mlp_only_layers",
                       .count_default = 128,
                       .chosen_default = 8,
                       .width_default = 768});
}

ExpertLayers read_qwen3_vl_moe(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.step = "decoder_sparse_step",
                       .dense = "mlp_only_layers",
                       .count_default = 60,
                       .chosen_default = 4,
                       .width_default = 1408});
}

// llama.cpp takes every layer as sparse in both families.
constexpr ExpertRules kQwen2MoeRules{.read = read_qwen2_moe, .keys = kExpertKeyNames, .tensors = kQwen2MoeExperts};
constexpr ExpertRules kQwen3MoeRules{
    .read = read_qwen3_moe, .gguf_normalised = true, .keys = kExpertKeyNames, .tensors = kMlpExperts};
constexpr ExpertRules kQwen3VlMoeRules{
    .read = read_qwen3_vl_moe, .gguf_normalised = true, .keys = kExpertKeyNames, .tensors = kQwen3VlExperts};

}  // namespace

constexpr Architecture kQwen2{.name = "qwen2",
                              .hf_class = "Qwen2ForCausalLM",
                              .hf_base_class = "Qwen2Model",
                              .model_type = "qwen2",
                              .gguf = "qwen2",
                              .model_tensors = kModelTensors,
                              .attention_tensors = kQwen2Attention,
                              .feed_forward_tensors = kQwenFeedForward,
                              .windows = WindowRule::kUpperLayers,
                              .keys = {.kv_heads_default = 32, .context_default = 32768, .window_default = 4096}};

constexpr Architecture kQwen3{.name = "qwen3",
                              .hf_class = "Qwen3ForCausalLM",
                              .hf_base_class = "Qwen3Model",
                              .model_type = "qwen3",
                              .gguf = "qwen3",
                              .model_tensors = kModelTensors,
                              .attention_tensors = kQwen3Attention,
                              .feed_forward_tensors = kQwenFeedForward,
                              .arithmetic = {.qk_norm = QkNorm::kHead},
                              .windows = WindowRule::kUpperLayers,
                              .keys = {.attention_bias = "attention_bias",
                                       .head_dim_default = 128,
                                       .kv_heads_default = 32,
                                       .context_default = 32768,
                                       .window_default = 4096}};

// Text gives the three positions of its RoPE one value, so the sections of the chunks (mrope_section) have no effect.
constexpr Architecture kQwen3Vl{.name = "qwen3_vl",
                                .hf_class = "Qwen3VLForCausalLM",
                                .hf_base_class = "Qwen3VLTextModel",
                                .model_type = "qwen3_vl_text",
                                .gguf = "qwen3vl",
                                .model_tensors = kModelTensors,
                                .attention_tensors = kQwen3Attention,
                                .feed_forward_tensors = kQwenFeedForward,
                                .arithmetic = {.qk_norm = QkNorm::kHead},
                                .keys = {.attention_bias = "attention_bias",
                                         .head_dim_default = 128,
                                         .kv_heads_default = 32,
                                         .context_default = 128000},
                                .rope = {.theta = 5e5}};

constexpr Architecture kQwen3VlMoe{
    .name = "qwen3_vl_moe",
    .hf_class = "Qwen3VLMoeForCausalLM",
    .hf_base_class = "Qwen3VLMoeTextModel",
    .model_type = "qwen3_vl_moe_text",
    .gguf = "qwen3vlmoe",
    .model_tensors = kModelTensors,
    .attention_tensors = kQwen3Attention,
    .feed_forward_tensors = kQwenFeedForward,
    .arithmetic = {.qk_norm = QkNorm::kHead},
    .experts = &kQwen3VlMoeRules,
    .keys = {.attention_bias = "attention_bias", .kv_heads_default = 16, .context_default = 128000},
    .rope = {.theta = 5e5}};

constexpr Architecture kQwen2Moe{.name = "qwen2_moe",
                                 .hf_class = "Qwen2MoeForCausalLM",
                                 .hf_base_class = "Qwen2MoeModel",
                                 .model_type = "qwen2_moe",
                                 .gguf = "qwen2moe",
                                 .model_tensors = kModelTensors,
                                 .attention_tensors = kQwen2MoeAttention,
                                 .feed_forward_tensors = kQwenFeedForward,
                                 .windows = WindowRule::kEvenLayers,
                                 .experts = &kQwen2MoeRules,
                                 .keys = {.attention_bias = "qkv_bias",
                                          .attention_bias_default = true,
                                          .kv_heads_default = 16,
                                          .context_default = 32768,
                                          .window_default = 4096}};

constexpr Architecture kQwen3Moe{
    .name = "qwen3_moe",
    .hf_class = "Qwen3MoeForCausalLM",
    .hf_base_class = "Qwen3MoeModel",
    .model_type = "qwen3_moe",
    .gguf = "qwen3moe",
    .model_tensors = kModelTensors,
    .attention_tensors = kQwen3Attention,
    .feed_forward_tensors = kQwenFeedForward,
    .arithmetic = {.qk_norm = QkNorm::kHead},
    .windows = WindowRule::kSwitched,
    .experts = &kQwen3MoeRules,
    .keys = {
        .attention_bias = "attention_bias", .kv_heads_default = 4, .context_default = 32768, .window_default = 4096}};

}  // namespace kvs::inline model
