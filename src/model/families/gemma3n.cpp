#include <algorithm>
#include <string>

#include "core/error.h"
#include "model/families/families.h"
#include "model/families/layer_inputs.h"
#include "model/families/tensors.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kGemma3nTensors =
    join(kModelTensors, kInputs,
         std::array{TensorSpec{kStreamIn, "model.altup_projections.{}", "", kModel, kModel},
                    TensorSpec{kStreamOut, "model.altup_unembed_projections.{}", "", kModel, kModel}});

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

/// Reads the shares of gate channels that layers cut: one for each layer, or one for all.
void read_sparsity(const JsonCursor& root, ModelConfig& config) {
  constexpr std::string_view kPattern = "activation_sparsity_pattern";
  constexpr std::size_t kSparse = 10;  // the first layers of a deeper model, if none are stated
  const auto set = [&](std::size_t layer, const JsonCursor& stated) {
    const double share = stated.real();
    if (share < 0 || share >= 1) stated.fail("a share from 0 to below 1");
    config.layer[layer].feed_forward.sparsity = static_cast<float>(share);
  };
  const std::size_t layers = config.layers();
  if (!root.has(kPattern)) {
    for (std::size_t layer = 0; layers > kSparse && layer < kSparse; ++layer)
      config.layer[layer].feed_forward.sparsity = 0.95F;
    return;
  }
  const JsonCursor pattern = root.at(kPattern);
  const bool listed = pattern.value().is_array();
  if (listed && pattern.array_size() != layers)
    pattern.fail("a share for each of " + std::to_string(layers) + " layers");
  for (std::size_t layer = 0; layer < layers; ++layer) set(layer, listed ? pattern.at(layer) : pattern);
}

void read_streams(const JsonCursor& root, ModelConfig& config) {
  constexpr std::string_view kActive = "altup_active_idx", kScaled = "altup_correct_scale";
  constexpr std::uint64_t kMostStreams = 64;
  if (root.has(kActive) && root.at(kActive).unsigned_integer(kMostStreams) != 0)
    throw Error(ErrorCode::kUnsupported, root.at(kActive).place(),
                "found " + describe_json(root.at(kActive).value()) + ", supported is: 0, the first stream");
  config.streams.count = hf_count(root, "altup_num_inputs", kMostStreams, 4);
  if (config.streams.count < 2) root.at("altup_num_inputs").fail("2 to " + std::to_string(kMostStreams));
  config.streams.scaled = !root.has(kScaled) || root.at(kScaled).boolean();
  config.laurel_rank = hf_count(root, "laurel_rank", kMaxWidth, 64);
}

void read_gemma3n_layers(const JsonCursor& root, ModelConfig& config) {
  for (LayerConfig& layer : config.layer) layer.attention.scale = 1;
  constexpr std::string_view kShared = "num_kv_shared_layers";
  constexpr std::size_t kSharedDefault = 15;
  const std::size_t shared = root.has(kShared) ? root.at(kShared).unsigned_integer(config.layers())
                                               : std::min(kSharedDefault, config.layers());
  if (!share_kv_layers(shared, config)) (root.has(kShared) ? root.at(kShared) : root).fail(kSourceMissing);
  read_sparsity(root, config);
  read_streams(root, config);
  config.layer_inputs = hf_count(root, "hidden_size_per_layer_input", kMaxWidth, 256);
  config.layer_input_vocabulary = hf_count(root, "vocab_size_per_layer_input", kMaxVocabularySize, 262144);
  config.layer_input_for_others = true;
}

constexpr LayerRules kGemma3nRules{.read = read_gemma3n_layers, .keys = kGemma3nKeys};

}  // namespace

constexpr Architecture kGemma3n{.name = "gemma3n",
                                .hf_class = "Gemma3nForCausalLM",
                                .hf_base_class = "Gemma3nTextModel",
                                .model_type = "gemma3n_text",
                                .model_tensors = kGemma3nTensors,
                                .attention_tensors = kGemma3nAttention,
                                .feed_forward_tensors = kGemma3nFeedForward,
                                .arithmetic = {.output_norms = true,
                                               .qk_norm = QkNorm::kHead,
                                               .value_norm = true,
                                               .activation = Activation::kGeluTanh,
                                               .scaled_embeddings = true},
                                .windows = WindowRule::kPattern,
                                .window_period = 5,
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
