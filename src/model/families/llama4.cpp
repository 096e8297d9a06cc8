// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/tensors.h"
#include "model/gguf_layers.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kLlama4Attention = pre_norm_attention(B::kAttention, B::kAttention);

constexpr std::array kLlama4FeedForward{
    kMiddleNorm, TensorSpec{kGate, "model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate", kFeedForward, kModel},
    TensorSpec{kUp, "model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up", kFeedForward, kModel},
    TensorSpec{kDown, "model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down", kModel, kFeedForward}};

constexpr std::array kLlama4Router{kMiddleNorm, router("model.layers.{}.feed_forward.router"),
                                   TensorSpec{kSharedGate, "model.layers.{}.feed_forward.shared_expert.gate_proj",
                                              "blk.{}.ffn_gate_shexp", kSharedWidth, kModel},
                                   TensorSpec{kSharedUp, "model.layers.{}.feed_forward.shared_expert.up_proj",
                                              "blk.{}.ffn_up_shexp", kSharedWidth, kModel},
                                   TensorSpec{kSharedDown, "model.layers.{}.feed_forward.shared_expert.down_proj",
                                              "blk.{}.ffn_down_shexp", kModel, kSharedWidth}};

// Quantised checkpoints have a tensor for each expert, others one for all.
constexpr auto kLlama4Experts = join(kLlama4Router, experts("model.layers.{}.feed_forward.experts.{}.gate_proj",
                                                            "model.layers.{}.feed_forward.experts.{}.up_proj",
                                                            "model.layers.{}.feed_forward.experts.{}.down_proj"));

constexpr std::array<std::string_view, 8> kLlama4ExpertKeys{
    "num_local_experts",    "num_experts_per_tok",  "interleave_moe_layer_step", "moe_layers",
    "output_router_logits", "router_aux_loss_coef", "router_jitter_noise",       "for_llm_compressor"};

/// Sets the layers with experts that the config lists.
void read_listed_layers(const JsonCursor& list, std::vector<bool>& sparse) {
  sparse.assign(sparse.size(), false);
  for (std::size_t n = 0; n < list.array_size(); ++n) {
    const std::uint64_t layer = list.at(n).unsigned_integer(kMaxLayers);
    if (layer < sparse.size()) sparse[layer] = true;  // Transformers ignores other numbers
  }
}

ExpertLayers read_llama4_experts(const JsonCursor& root, std::size_t layers) {
  ExpertLayers all = read_experts(root, layers,
                                  {.count = {"num_local_experts", ""},
                                   .width = "intermediate_size",
                                   .shared_width = "intermediate_size",
                                   .step = "interleave_moe_layer_step",
                                   .scores = ExpertsConfig::Scores::kSigmoid,
                                   .count_default = 16,
                                   .chosen_default = 1,
                                   .width_default = 8192,
                                   .shared_width_default = 8192});
  if (root.has("moe_layers")) read_listed_layers(root.at("moe_layers"), all.sparse);
  all.experts.normalised = false;
  all.experts.scaled_inputs = true;
  return all;
}

constexpr std::array<std::string_view, 4> kLlama4LayerKeys{"attention_chunk_size", "attn_temperature_tuning",
                                                           "attn_scale", "floor_scale"};

/// Reads the switch of the queries' temperature, which old configs state as a number.
bool has_temperature(const JsonCursor& root) {
  constexpr std::string_view kTuned = "attn_temperature_tuning";
  const bool number = root.has(kTuned) && root.at(kTuned).value().is_number();
  return number ? root.at(kTuned).real() != 0 : hf_switch(root, kTuned, true);
}

constexpr float kTemperature = 0.1F;            // attn_scale
constexpr std::size_t kTemperatureStep = 8192;  // floor_scale

/// Layers that rotate normalise queries and keys; the others have a temperature of queries.
void set_llama4_layers(const std::vector<bool>& unrotated, bool norms, const QueryTemperature& temperature,
                       ModelConfig& config) {
  for (std::size_t layer = 0; layer < config.layers(); ++layer) {
    AttentionConfig& attention = config.layer[layer].attention;
    attention.unit_norms = norms && !unrotated[layer];
    if (unrotated[layer]) attention.temperature = temperature;
  }
}

void read_llama4_layers(const JsonCursor& root, ModelConfig& config) {
  const float scale = root.has("attn_scale") ? static_cast<float>(root.at("attn_scale").real()) : kTemperature;
  const std::size_t length = hf_count(root, "floor_scale", kMaxContext, kTemperatureStep);
  QueryTemperature temperature;
  if (has_temperature(root)) temperature = {scale, length, 1};
  const bool norms = hf_switch(root, kLlama4.keys.qk_norm, kLlama4.keys.qk_norm_default);
  set_llama4_layers(hf_unrotated(root, kLlama4, config), norms, temperature, config);
}

/// llama.cpp takes a window of 0 for full attention in all layers, and ignores other numbers.
void check_llama4_window(const GgufKeys& keys) {
  constexpr std::string_view kWindow = "attention.sliding_window";
  if (keys.has(kWindow) && !keys.nonzero(kWindow))
    keys.fail(ErrorCode::kUnsupported, kWindow, "found 0, full attention in all layers; supported are: chunks");
}

/// llama.cpp has constants where the keys are missing that other programs write: the temperature, and no QK-norm in
/// models of 128 experts.
void read_llama4_gguf(const GgufKeys& keys, ModelConfig& config) {
  constexpr std::string_view kStep = "attention.floor_scale", kExpertCount = "expert_count";
  constexpr std::size_t kExpertsWithoutNorms = 128;
  check_llama4_window(keys);
  const bool without = keys.has(kExpertCount) && keys.unsigned_integer(kExpertCount, kMaxWidth) == kExpertsWithoutNorms;
  const bool norms = keys.boolean("use_qk_norm", !without);
  if (!norms) {
    config.arithmetic.qk_norm = QkNorm::kNone;
    config.arithmetic.norms_after_rope = false;
  }
  QueryTemperature temperature;
  if (keys.boolean("attention.temperature_tuning", true))
    temperature = {kTemperature, keys.has(kStep) ? keys.count(kStep, kMaxContext) : kTemperatureStep, 1};
  const auto unrotated = unrotated_by_rule(kLlama4, config, true, gguf_unrotated_interval(keys));
  set_llama4_layers(unrotated, norms, temperature, config);
  for (LayerConfig& layer : config.layer) layer.feed_forward.experts.scaled_inputs = layer.feed_forward.is_sparse();
}

constexpr ExpertRules kLlama4ExpertRules{.read = read_llama4_experts,
                                         .keys = kLlama4ExpertKeys,
                                         .tensors = kLlama4Experts,
                                         .hf_joined_transposed = true,
                                         .gguf_scores = ExpertsConfig::Scores::kSigmoid};
constexpr LayerRules kLlama4LayerRules{
    .read = read_llama4_layers, .keys = kLlama4LayerKeys, .read_gguf_sizes = read_llama4_gguf};

}  // namespace

constexpr Architecture kLlama4{.name = "llama4",
                               .hf_class = "Llama4ForCausalLM",
                               .hf_base_class = "Llama4TextModel",
                               .model_type = "llama4_text",
                               .gguf = "llama4",
                               .model_tensors = kModelTensors,
                               .attention_tensors = kLlama4Attention,
                               .feed_forward_tensors = kLlama4FeedForward,
                               .arithmetic = {.qk_norm = QkNorm::kHead, .norms_after_rope = true},
                               .windows = WindowRule::kChunks,
                               .gguf_windows = WindowRule::kChunks,
                               .unrotated = UnrotatedRule::kListed,
                               .gguf_window_default = 8192,
                               .gguf_interleaved = true,
                               .hf_interleaved = true,
                               .experts = &kLlama4ExpertRules,
                               .layers = &kLlama4LayerRules,
                               .keys = {.norm_epsilon_default = 1e-5F,
                                        .attention_bias = "attention_bias",
                                        .qk_norm = "use_qk_norm",
                                        .qk_norm_default = true,
                                        .d_ff = "intermediate_size_mlp",
                                        .d_ff_default = 16384,
                                        .head_dim_default = 128,
                                        .kv_heads_default = 8,
                                        .query_heads_default = 40,
                                        .vocabulary_default = 202048,
                                        .context_default = 131072,
                                        .window_default = 8192},
                               .rope = {.theta = 5e5}};

}  // namespace kvs::inline model
