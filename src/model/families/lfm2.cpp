// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "model/families/experts.h"
#include "model/families/families.h"
#include "model/families/recurrence.h"
#include "model/families/tensors.h"
#include "model/gguf_keys.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr std::array kLfm2Model{
    kTokens, TensorSpec{kFinalNorm, "model.embedding_norm", "token_embd_norm", kModel, kNone}, kLmHead};
constexpr TensorSpec kOperatorNorm{kAttentionNorm, "model.layers.{}.operator_norm", "blk.{}.attn_norm", kModel, kNone};
constexpr TensorSpec kFfnNorm{kFeedForwardNorm, "model.layers.{}.ffn_norm", "blk.{}.ffn_norm", kModel, kNone};
constexpr auto kLfm2Attention = join(
    std::array{kOperatorNorm}, qkv(B::kNone),
    std::array{TensorSpec{kQueryNorm, "model.layers.{}.self_attn.q_layernorm", "blk.{}.attn_q_norm", kHeadDim, kNone},
               TensorSpec{kKeyNorm, "model.layers.{}.self_attn.k_layernorm", "blk.{}.attn_k_norm", kHeadDim, kNone},
               TensorSpec{kOutput, "model.layers.{}.self_attn.out_proj", "blk.{}.attn_output", kModel, kQueryRows}});
constexpr std::array kLfm2FeedForward{
    kFfnNorm, TensorSpec{kGate, "model.layers.{}.feed_forward.w1", "blk.{}.ffn_gate", tensors::kFeedForward, kModel},
    TensorSpec{kUp, "model.layers.{}.feed_forward.w3", "blk.{}.ffn_up", tensors::kFeedForward, kModel},
    TensorSpec{kDown, "model.layers.{}.feed_forward.w2", "blk.{}.ffn_down", kModel, tensors::kFeedForward}};
constexpr auto kLfm2Experts =
    join(std::array{kFfnNorm, router("model.layers.{}.feed_forward.gate"),
                    router_bias("model.layers.{}.feed_forward.expert_bias")},
         experts("model.layers.{}.feed_forward.experts.{}.w1", "model.layers.{}.feed_forward.experts.{}.w3",
                 "model.layers.{}.feed_forward.experts.{}.w2"));
constexpr TensorSpec conv_input(TensorRole role) {
  return {role, "model.layers.{}.conv.in_proj", "blk.{}.shortconv.in_proj", kMixerValueRows, kModel, B::kConvolution};
}
constexpr std::array kLfm2Recurrence{kOperatorNorm,
                                     conv_input(kMixerFactor),
                                     conv_input(kMixerGate),
                                     conv_input(kMixerValue),
                                     TensorSpec{kMixerTaps, "model.layers.{}.conv.conv", "blk.{}.shortconv.conv",
                                                kMixerChannels, kMixerKernel, B::kConvolution},
                                     TensorSpec{kMixerOutput, "model.layers.{}.conv.out_proj",
                                                "blk.{}.shortconv.out_proj", kModel, kMixerValueRows, B::kConvolution}};

/// Returns true for the layers with a convolution: by layer_types, or by full_attn_idxs, which lists the others.
std::vector<bool> convolution_layers(const JsonCursor& root, std::size_t layers) {
  static constexpr std::array<std::string_view, 2> kKinds{"full_attention", "conv"};
  constexpr std::string_view kFull = "full_attn_idxs";
  std::vector<bool> convolves(layers, root.has(kFull));
  const std::vector<std::size_t> types = read_layer_types(root, layers, kKinds);
  for (std::size_t layer = 0; layer < types.size(); ++layer) convolves[layer] = types[layer] == 1;
  if (!types.empty() || !root.has(kFull)) return convolves;
  const JsonCursor full = root.at(kFull);
  for (std::size_t n = 0; n < full.array_size(); ++n) {
    const std::uint64_t layer = full.at(n).unsigned_integer(kMaxLayers);
    if (layer < layers) convolves[layer] = false;
  }
  return convolves;
}

RecurrenceConfig short_convolution(std::size_t channels, std::size_t taps) {
  return {
      .kind = RecurrenceConfig::Kind::kShortConvolution, .value_heads = 1, .value_head_dim = channels, .kernel = taps};
}

void read_gguf_convolutions(const GgufKeys& keys, ParsedConfig& parsed) {
  set_gguf_mixers(short_convolution(parsed.config.d_model, keys.count("shortconv.l_cache", kMaxTaps)), parsed);
}

/// Transformers passes over hidden_act.
void read_convolutions(const JsonCursor& root, ParsedConfig& parsed) {
  check_mixer_activation(root, "hidden_act");
  const RecurrenceConfig block = short_convolution(parsed.config.d_model, hf_count(root, "conv_L_cache", kMaxTaps, 3));
  const std::vector<bool> convolves = convolution_layers(root, parsed.config.layers());
  for (std::size_t layer = 0; layer < convolves.size(); ++layer) {
    if (!convolves[layer]) continue;
    parsed.config.layer[layer].attention = {};
    parsed.config.layer[layer].recurrence = block;
  }
  parsed.config.tied_head = hf_switch(root, "tie_embedding", parsed.config.tied_head);
}

constexpr std::string_view kStatedWidth = "block_ff_dim";

/// Returns the width of a feed-forward network of which `stated` channels are stated; 0: none are left.
std::size_t adjusted_width(const JsonCursor& root, std::size_t stated) {
  constexpr std::string_view kAdjusts = "block_auto_adjust_ff_dim", kFactor = "block_ffn_dim_multiplier",
                             kMultiple = "block_multiple_of";
  if (!hf_switch(root, kAdjusts, true)) return stated;
  const std::size_t width = 2 * stated / 3;
  if (root.value().contains(kFactor) && root.at(kFactor).is_null()) return width;
  const double scaled = hf_positive(root, kFactor, 1) * static_cast<double>(width);
  const std::size_t multiple = hf_count(root, kMultiple, kMaxWidth, 256);
  if (scaled > static_cast<double>(kMaxWidth))
    root.at(kFactor).fail("a factor that leaves at most " + std::to_string(kMaxWidth) + " channels");
  return (static_cast<std::size_t>(scaled) + multiple - 1) / multiple * multiple;
}

void read_lfm2(const JsonCursor& root, ParsedConfig& parsed) {
  read_convolutions(root, parsed);
  const std::string_view key = root.has(kStatedWidth) ? kStatedWidth : "intermediate_size";
  for (LayerConfig& layer : parsed.config.layer) {
    const std::size_t stated =
        root.has(kStatedWidth) ? hf_count(root, kStatedWidth, kMaxWidth) : layer.feed_forward.d_ff;
    layer.feed_forward.d_ff = adjusted_width(root, stated);
    if (layer.feed_forward.d_ff == 0)
      fail_hf_number(root, key, stated, "a width that leaves channels after its adjustment");
  }
}

void read_lfm2_moe(const JsonCursor& root, ParsedConfig& parsed) {
  read_convolutions(root, parsed);
  parsed.router_bias = hf_switch(root, "use_expert_bias", true);
}

ExpertLayers read_lfm2_experts(const JsonCursor& root, std::size_t layers) {
  return read_experts(root, layers,
                      {.count = {"num_experts", ""},
                       .normalised = "norm_topk_prob",
                       .scaled = true,
                       .first = "num_dense_layers",
                       .first_default = 2,
                       .normalised_default = true,
                       .scores = ExpertsConfig::Scores::kSigmoid,
                       .count_default = 32,
                       .chosen_default = 4,
                       .width_default = 1792});
}

constexpr std::array<std::string_view, 12> kLfm2Keys{"block_auto_adjust_ff_dim",
                                                     "block_ff_dim",
                                                     "block_ffn_dim_multiplier",
                                                     "block_multiple_of",
                                                     "conv_L_cache",
                                                     "full_attn_idxs",
                                                     "num_dense_layers",
                                                     "tie_embedding",
                                                     "use_expert_bias",
                                                     "block_dim",
                                                     "block_norm_eps",
                                                     "conv_dim"};
constexpr RecurrenceRules kLfm2Rules{
    .read = read_lfm2, .keys = kLfm2Keys, .tensors = kLfm2Recurrence, .read_gguf = read_gguf_convolutions};
constexpr RecurrenceRules kLfm2MoeRules{
    .read = read_lfm2_moe, .keys = kLfm2Keys, .tensors = kLfm2Recurrence, .read_gguf = read_gguf_convolutions};
constexpr ExpertRules kLfm2ExpertRules{.read = read_lfm2_experts,
                                       .gguf_normalised = true,
                                       .keys = kExpertKeyNames,
                                       .tensors = kLfm2Experts,
                                       .gguf_scores = ExpertsConfig::Scores::kSigmoid};

constexpr ConfigKeys lfm2_keys(std::size_t d_ff) {
  return {.norm_epsilon = "norm_eps",
          .norm_epsilon_default = 1e-5F,
          .convolution_bias = "conv_bias",
          .d_ff_default = d_ff,
          .kv_heads_default = 8,
          .context_default = 128000,
          .tied_head_default = true};
}

}  // namespace

constexpr Architecture kLfm2{.name = "lfm2",
                             .hf_class = "Lfm2ForCausalLM",
                             .hf_base_class = "Lfm2Model",
                             .model_type = "lfm2",
                             .gguf = "lfm2",
                             .model_tensors = kLfm2Model,
                             .attention_tensors = kLfm2Attention,
                             .feed_forward_tensors = kLfm2FeedForward,
                             .arithmetic = {.qk_norm = QkNorm::kHead},
                             .recurrence = &kLfm2Rules,
                             .keys = lfm2_keys(12288),
                             .rope = {.theta = 1e6}};

constexpr Architecture kLfm2Moe{.name = "lfm2_moe",
                                .hf_class = "Lfm2MoeForCausalLM",
                                .hf_base_class = "Lfm2MoeModel",
                                .model_type = "lfm2_moe",
                                .gguf = "lfm2moe",
                                .model_tensors = kLfm2Model,
                                .attention_tensors = kLfm2Attention,
                                .feed_forward_tensors = kLfm2FeedForward,
                                .arithmetic = {.qk_norm = QkNorm::kHead},
                                .experts = &kLfm2ExpertRules,
                                .recurrence = &kLfm2MoeRules,
                                .keys = lfm2_keys(7168),
                                .rope = {.theta = 1e6}};

}  // namespace kvs::inline model
