// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/error.h"
#include "model/families/families.h"
#include "model/families/layer_inputs.h"
#include "model/families/tensors.h"
#include "model/gguf_keys.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kGemma3nTensors =
    join(kModelTensors, kInputs,
         std::array{TensorSpec{kStreamIn, "model.altup_projections.{}", "altup_proj", kModel, kModel},
                    TensorSpec{kStreamOut, "model.altup_unembed_projections.{}", "altup_unembd_proj", kModel, kModel}});

/// A tensor of AltUp or Laurel.
constexpr TensorSpec of_layer(TensorRole role, std::string_view hf, std::string_view gguf, TensorAxis rows,
                              TensorAxis columns) {
  return {role, hf, gguf, rows, columns};
}
constexpr auto kGemma3nAttention = join(
    std::array{kInputNorm}, qkv(B::kAttention), qk_norms(kHeadDim, kHeadDim),
    std::array{
        o_proj(B::kAttention), kAfterAttention,
        of_layer(kLaurelDown, "model.layers.{}.laurel.linear_left", "blk.{}.laurel_l", kLaurel, kModel),
        of_layer(kLaurelUp, "model.layers.{}.laurel.linear_right", "blk.{}.laurel_r", kModel, kLaurel),
        of_layer(kLaurelNorm, "model.layers.{}.laurel.post_laurel_norm", "blk.{}.laurel_post_norm", kModel, kNone)});
constexpr auto kGemma3nFeedForward = join(
    std::array{kBeforeFeedForward}, gated_mlp(B::kNone), std::array{kAfterFeedForward}, kInputOfLayer,
    std::array{
        of_layer(kStreamRouter, "model.layers.{}.altup.modality_router", "blk.{}.altup_router", kStreams, kModel),
        of_layer(kStreamRouterNorm, "model.layers.{}.altup.router_norm", "blk.{}.altup_router_norm", kModel, kNone),
        of_layer(kStreamPrediction, "model.layers.{}.altup.prediction_coefs", "blk.{}.altup_predict_coef", kStreamPairs,
                 kStreams),
        of_layer(kStreamCorrection, "model.layers.{}.altup.correction_coefs", "blk.{}.altup_correct_coef", kStreams,
                 kStreams),
        TensorSpec{.role = kStreamScale,
                   .hf = "model.layers.{}.altup.correct_output_scale",
                   .gguf = "blk.{}.altup_correct_scale",
                   .rows = kModel,
                   .columns = kNone,
                   .hf_ending = ""}});

constexpr std::array<std::string_view, 10> kGemma3nKeys{"altup_active_idx",
                                                        "altup_coef_clip",  // training alone reads it
                                                        "altup_correct_scale",
                                                        "altup_num_inputs",
                                                        "laurel_rank",
                                                        "activation_sparsity_pattern",
                                                        "hidden_size_per_layer_input",
                                                        "vocab_size_per_layer_input",
                                                        "num_kv_shared_layers",
                                                        "query_pre_attn_scalar"};

constexpr std::uint64_t kMostStreams = 64;
constexpr std::size_t kStreamCount = 4, kInputWidth = 256;  // of files that do not state them

/// Lets the first layers of a deeper model cut gates, as where no shares are stated.
void set_usual_sparsity(ModelConfig& config) {
  constexpr std::size_t kSparse = 10;
  constexpr float kShare = 0.95F;
  for (std::size_t layer = 0; config.layers() > kSparse && layer < kSparse; ++layer)
    config.layer[layer].feed_forward.sparsity = kShare;
}

/// Reads the shares of gate channels that layers cut: one for each layer, or one for all.
void read_sparsity(const JsonCursor& root, ModelConfig& config) {
  constexpr std::string_view kPattern = "activation_sparsity_pattern";
  const auto set = [&](std::size_t layer, const JsonCursor& stated) {
    const double share = stated.real();
    if (share < 0 || share >= 1) stated.fail("a share from 0 to below 1");
    config.layer[layer].feed_forward.sparsity = static_cast<float>(share);
  };
  const std::size_t layers = config.layers();
  if (!root.has(kPattern)) return set_usual_sparsity(config);
  const JsonCursor pattern = root.at(kPattern);
  const bool listed = pattern.value().is_array();
  if (listed && pattern.array_size() != layers)
    pattern.fail("a share for each of " + std::to_string(layers) + " layers");
  for (std::size_t layer = 0; layer < layers; ++layer) set(layer, listed ? pattern.at(layer) : pattern);
}

void read_streams(const JsonCursor& root, ModelConfig& config) {
  constexpr std::string_view kActive = "altup_active_idx";
  if (root.has(kActive) && root.at(kActive).unsigned_integer(kMostStreams) != 0)
    throw Error(ErrorCode::kUnsupported, root.at(kActive).place(),
                "found " + describe_json(root.at(kActive).value()) + ", supported is: 0, the first stream");
  config.streams.count = hf_count(root, "altup_num_inputs", kMostStreams, kStreamCount);
  if (config.streams.count < 2) root.at("altup_num_inputs").fail("2 to " + std::to_string(kMostStreams));
  config.streams.scaled = hf_switch(root, "altup_correct_scale", true);
  config.laurel_rank = hf_count(root, "laurel_rank", kMaxWidth, 64);
}

void read_gemma3n_layers(const JsonCursor& root, ModelConfig& config) {
  for (LayerConfig& layer : config.layer) layer.attention.scale = 1;
  constexpr std::string_view kShared = "num_kv_shared_layers";
  constexpr std::size_t kSharedDefault = 15;
  const std::size_t shared = root.has(kShared) ? root.at(kShared).unsigned_integer(config.layers())
                                               : std::min(kSharedDefault, config.layers());
  if (!share_kv_layers(shared, config)) fail_hf_number(root, kShared, shared, std::string(kSourceMissing));
  read_sparsity(root, config);
  read_streams(root, config);
  config.layer_inputs = hf_count(root, "hidden_size_per_layer_input", kMaxWidth, kInputWidth);
  config.layer_input_vocabulary = hf_count(root, "vocab_size_per_layer_input", kMaxVocabularySize, 262144);
  config.layer_input_for_others = true;
}

/// Reads how many standard deviations above its mean a gate must be, by layer: those of the share that is cut, if
/// gates are normally distributed. Minus infinity: nothing is cut.
void read_gguf_sparsity(const GgufKeys& keys, ModelConfig& config) {
  constexpr std::string_view kScale = "activation_sparsity_scale";
  if (!keys.has(kScale)) return set_usual_sparsity(config);
  const std::vector<double> scales = keys.reals(kScale, config.layers());
  for (std::size_t layer = 0; layer < config.layers(); ++layer) {
    const auto share = static_cast<float>(0.5 * std::erfc(-scales[layer] / std::numbers::sqrt2));
    if (!(share < 1))
      keys.fail(ErrorCode::kInput, kScale,
                "found " + std::to_string(scales[layer]) + " in layer " + std::to_string(layer) +
                    ", expected a number of standard deviations that cuts less than all gates");
    config.layer[layer].feed_forward.sparsity = share;
  }
}

void read_gguf_streams(const GgufKeys& keys, ModelConfig& config) {
  constexpr std::string_view kActive = "altup.active_idx", kCount = "altup.num_inputs";
  if (keys.nonzero(kActive))
    keys.fail(
        ErrorCode::kUnsupported, kActive,
        "found " + std::to_string(keys.unsigned_integer(kActive, UINT32_MAX)) + ", supported is: 0, the first stream");
  config.streams = {.count = keys.has(kCount) ? keys.count(kCount, kMostStreams) : kStreamCount, .scaled = true};
  if (config.streams.count < 2)
    keys.fail(ErrorCode::kInput, kCount, "found 1, expected 2 to " + std::to_string(kMostStreams));
}

/// Returns the rows of a matrix; 0: it is missing.
std::size_t stored_rows(const GgufKeys& keys, std::string_view tensor, std::uint64_t most) {
  const StoredTensor* const stored = keys.file().find(tensor);
  return stored == nullptr ? 0 : static_cast<std::size_t>(std::min(stored->rows(), most));
}

/// Values that no key states follow from tensors, or are constants of llama.cpp: layers from the 20th on read other
/// layers' keys and values.
void read_gemma3n_gguf(const GgufKeys& keys, ModelConfig& config) {
  constexpr std::string_view kWidth = "embedding_length_per_layer_input";
  constexpr std::size_t kOwnLayers = 20;
  for (LayerConfig& layer : config.layer) layer.attention.scale = 1;
  const std::size_t otherwise = config.layers() - std::min(config.layers(), kOwnLayers);
  read_gguf_shared_rows(keys, otherwise, config);
  read_gguf_sparsity(keys, config);
  read_gguf_streams(keys, config);
  config.laurel_rank = stored_rows(keys, "blk.0.laurel_l.weight", kMaxWidth);
  config.layer_inputs = keys.has(kWidth) ? keys.count(kWidth, kMaxWidth) : kInputWidth;
  config.layer_input_vocabulary = stored_rows(keys, "per_layer_token_embd.weight", kMaxVocabularySize);
  config.layer_input_for_others = true;
}

constexpr LayerRules kGemma3nRules{
    .read = read_gemma3n_layers, .keys = kGemma3nKeys, .read_gguf_sizes = read_gemma3n_gguf};

}  // namespace

constexpr Architecture kGemma3n{.name = "gemma3n",
                                .hf_class = "Gemma3nForCausalLM",
                                .hf_base_class = "Gemma3nTextModel",
                                .model_type = "gemma3n_text",
                                .gguf = "gemma3n",
                                .model_tensors = kGemma3nTensors,
                                .attention_tensors = kGemma3nAttention,
                                .feed_forward_tensors = kGemma3nFeedForward,
                                .arithmetic = {.output_norms = true,
                                               .qk_norm = QkNorm::kHead,
                                               .value_norm = true,
                                               .activation = Activation::kGeluTanh,
                                               .scaled_embeddings = true},
                                .windows = WindowRule::kPattern,
                                .gguf_windows = WindowRule::kPattern,
                                .window_period = 5,
                                .gguf_window_default = 512,
                                .layers = &kGemma3nRules,
                                .keys = {.activation = "hidden_activation",
                                         .attention_bias = "attention_bias",
                                         .d_ff_default = 16384,
                                         .head_dim_default = 256,
                                         .kv_heads_default = 2,
                                         .query_heads_default = 8,
                                         .vocabulary_default = 262400,
                                         .context_default = 32768,
                                         .window_default = 512,
                                         .tied_head_default = true,
                                         .logit_softcap = "final_logit_softcapping",
                                         .logit_softcap_default = 30},
                                .rope = {.theta = 1e6, .window_theta = 1e4}};

}  // namespace kvs::inline model
