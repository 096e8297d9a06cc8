// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "model/arithmetic.h"
#include "model/config.h"
#include "model/rope_config.h"

namespace kvs::inline model {

struct ParsedConfig;  // model/parsed_config.h
class GgufKeys;       // model/gguf_keys.h

/// The use of a tensor, independent of its name in a file.
enum class TensorRole : std::uint8_t {
  kEmbedding,
  kFinalNorm,
  kHead,
  kRopeFactors,
  kRopeLongFactors,
  kRopeShortFactors,
  kAttentionNorm,  // of the attention block's input
  kQuery,
  kKey,
  kValue,
  kQueryNorm,
  kKeyNorm,
  kSinks,        // logits of the attention's sinks
  kOutputGate,   // of the attention's output: its sigmoid
  kQueryLatent,  // these: of latent attention, in which kQuery and kKey are the parts that rotate
  kQueryLatentNorm,
  kPlainQuery,  // the channels of queries that do not rotate
  kKvLatent,
  kKvLatentNorm,
  kLatentKeyMap,  // transposed W_k of all heads, [heads · rank, plain_dim], or
  kLatentKey,     // W_k of all heads, [heads · plain_dim, rank]
  kLatentValue,   // W_v of all heads, [heads · value_dim, rank]
  kIndexQuery,    // these: of the index of tokens
  kIndexKey,
  kIndexKeyNorm,
  kIndexWeight,  // of the index's heads, [heads, d_model]
  kOutput,
  kAttentionOutputNorm,
  kFeedForwardNorm,
  kGate,
  kUp,
  kDown,
  kFeedForwardOutputNorm,
  kDenseOutputNorm,  // these three: of a dense block next to experts, and of the experts
  kExpertsInputNorm,
  kExpertsOutputNorm,
  kLayerScale,           // multiplies the residual stream after the layer: [1]
  kInputEmbedding,       // these: of the layers' own inputs (ModelConfig::layer_inputs); [vocabulary, layers · width]
  kInputProjection,      // of the token embeddings, [layers · width, d_model]
  kInputProjectionNorm,  // [width]
  kInputGate,            // [width, d_model]
  kInputOutput,          // [d_model, width]
  kInputOutputNorm,
  kRouterNorm,   // gain of the router's input, to be divided by sqrt(d_model)
  kExpertScale,  // multiplies each expert's output: [expert]
  kRouter,
  kRouterBias,   // added to the scores by which experts are chosen
  kSharedScale,  // of the shared expert's output: its sigmoid
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kLatentIn,  // these two: of the chosen experts' common input and output
  kLatentOut,
  kMixerQuery,  // these: of a layer's recurrent block
  kMixerKey,
  kMixerValue,
  kMixerGate,      // of its output
  kMixerStrength,  // of the delta rule
  kMixerFactor,    // of the short convolution's input
  kMixerStep,
  kMixerTaps,  // of the convolution: [channel, tap]
  kMixerDecay,
  kMixerStepBias,
  kMixerSkip,
  kMixerNorm,
  kMixerOutput,
  kStreamRouter,  // these: of AltUp in a layer
  kStreamRouterNorm,
  kStreamPrediction,
  kStreamCorrection,
  kStreamScale,
  kLaurelDown,  // these: of the map parallel to the attention
  kLaurelUp,
  kLaurelNorm,
  kStreamIn,  // these two: AltUp's projections of the embeddings and of the last layer's streams, one for each stream
  kStreamOut,
  kExpertGate,  // these three: of each expert
  kExpertUp,
  kExpertDown
};
inline constexpr std::size_t kTensorRoles = static_cast<std::size_t>(TensorRole::kExpertGate), kExpertRoles = 3;
constexpr bool is_shared(TensorRole role) noexcept {
  return role >= TensorRole::kSharedScale && role <= TensorRole::kSharedDown;
}
constexpr bool is_of_mixer(TensorRole role) noexcept {
  return role >= TensorRole::kMixerQuery && role <= TensorRole::kMixerOutput;
}
constexpr bool is_of_stream(TensorRole role) noexcept {
  return role == TensorRole::kStreamIn || role == TensorRole::kStreamOut;
}
constexpr bool is_of_expert(TensorRole role) noexcept { return role >= TensorRole::kExpertGate; }

/// The quantity that determines an extent of a tensor's shape.
enum class TensorAxis : std::uint8_t {
  kNone,
  kVocabulary,
  kModel,
  kQueryRows,
  kKeyRows,
  kFeedForward,
  kChunks,
  kHeadDim,
  kQueryHeads,
  kKvHeads,
  kOne,
  kQueryLatentRank,  // these: of latent attention
  kLatentRank,
  kSharedKey,
  kPlainQueryRows,
  kRotatedQueryRows,
  kPlainDim,
  kIndexRows,
  kIndexDim,
  kIndexHeads,
  kLatentRows,  // heads · rank
  kLatentValueRows,
  kExperts,
  kExpertWidth,
  kSharedWidth,
  kLatent,
  kExpertModel,   // channels of an expert's input
  kMixerKeyRows,  // these: of the recurrent block
  kMixerValueRows,
  kMixerKeyHeads,
  kMixerHeads,  // value heads
  kMixerChannels,
  kMixerKernel,
  kMixerHeadDim,  // of a value head
  kLayerInput,    // these: ModelConfig::layer_inputs, of one layer and of all
  kLayerInputs,
  kInputVocabulary,
  kStreams,  // these: AltUp
  kStreamPairs,
  kOtherStreams,     // all but the first
  kOtherStreamRows,  // other streams · d_model
  kLaurel
};

/// When a tensor has a bias: never, always, or depending on a switch of the config.
enum class BiasGroup : std::uint8_t { kNone, kAlways, kAttention, kOutput, kFeedForward, kConvolution };

/// One tensor of an architecture. Names lack their ending; the first "{}" represents the layer, the second the expert,
/// or the head of a gain that has a vector for each head. A tensor of the experts whose name has no second "{}" holds
/// all experts: [expert, row, column]. Adjacent rows of the table with the same name in a format are parts of one
/// stored tensor, in the table's order.
struct TensorSpec {
  TensorRole role;
  std::string_view hf, gguf;  // empty: the format has no such tensor
  TensorAxis rows, columns;   // columns kNone: a vector of `rows`
  BiasGroup bias = BiasGroup::kNone;
  bool optional = false;           // a file may lack it
  std::string_view hf_other = {};  // whole name in other versions of Transformers
  std::string_view hf_ending = ".weight", gguf_ending = ".weight";
  bool hf_transposed = false;  // a tensor of all experts is [expert, column, row] in Hugging Face files
  bool hf_either_way = false;  // hf_transposed unless its shape is [expert, row, column]
  std::string_view hf_bias_ending = ".bias";
  bool alternating = false;      // the rows of a stored tensor's parts alternate
  bool sequential_only = false;  // models with a parallel residual lack it
  /// Hugging Face files store the parts of a tensor head by head: first all parts of head 0. kNone: part by part.
  TensorAxis hf_heads = TensorAxis::kNone;
  TensorAxis gguf_heads = TensorAxis::kNone;  // the same in GGUF
  TensorAxis by_head = TensorAxis::kNone;     // the tensor has three dimensions, of which the first is this one
  bool gguf_optional = false;                 // a GGUF may lack it

  bool per_layer() const noexcept { return (gguf.empty() ? hf : gguf).find("{}") != std::string_view::npos; }
};

/// Divisors of RoPE's frequencies, which a GGUF file of any architecture may hold.
inline constexpr std::array kRopeTensors{TensorSpec{TensorRole::kRopeFactors, "", "rope_freqs", TensorAxis::kChunks,
                                                    TensorAxis::kNone, BiasGroup::kNone, true},
                                         TensorSpec{TensorRole::kRopeLongFactors, "", "rope_factors_long",
                                                    TensorAxis::kChunks, TensorAxis::kNone, BiasGroup::kNone, true},
                                         TensorSpec{TensorRole::kRopeShortFactors, "", "rope_factors_short",
                                                    TensorAxis::kChunks, TensorAxis::kNone, BiasGroup::kNone, true}};

/// Which layers attend to a sliding window, and how a config states it.
enum class WindowRule : std::uint8_t {
  kNone,         // no layer: a config with a window is refused
  kEveryLayer,   // sliding_window; null: no window
  kUpperLayers,  // sliding_window from layer max_window_layers on, if use_sliding_window
  kSwitched,     // sliding_window in every layer, if use_sliding_window
  kEvenLayers,   // sliding_window in layers 0, 2, … below max_window_layers, if use_sliding_window
  kPattern,      // sliding_window in all but the last of every `window_period` layers
  kChunks        // attention_chunk_size, a chunk instead of a window, in layers that rotate; null: none
};

/// Which layers do not rotate queries and keys.
enum class UnrotatedRule : std::uint8_t {
  kNone,
  kListed,          // a 0 in no_rope_layers, or every no_rope_layer_interval-th layer
  kFullLayers,      // layers without a window
  kFullIfWindowed,  // layers without a window, if sliding_window is stated
  kUnlessStated     // all, unless position_embedding_type is "rope"
};

/// Keys of a config.json for differences between models of one family. Defaults are those of its Transformers class.
struct ConfigKeys {
  std::string_view norm_epsilon = "rms_norm_eps";
  float norm_epsilon_default = 1e-6F;
  std::string_view kv_heads = "num_key_value_heads";  // empty: equal to the number of query heads
  std::string_view activation = "hidden_act";
  std::string_view attention_bias = {};  // switch of BiasGroup::kAttention; empty: no such switch
  bool attention_bias_default = false;
  std::string_view output_bias = {};  // switch of BiasGroup::kOutput
  bool output_bias_default = false;
  std::string_view qk_norm = {};  // switch of the row's QK-norm; in GGUF its tensors decide, if it has some
  bool qk_norm_default = false;
  std::string_view unheeded =
      {};  // a switch that other code of the family reads, and its class in Transformers does not
  std::string_view mlp_bias = {};  // switch of BiasGroup::kFeedForward
  bool mlp_bias_default = false;
  std::string_view convolution_bias = {};  // switch of BiasGroup::kConvolution
  bool convolution_bias_default = false;
  std::string_view d_ff = "intermediate_size";  // of dense blocks
  std::size_t d_ff_default = 0;                 // 0: the key is required
  std::string_view logit_scale = {};            // key of ModelConfig::logit_scale
  float logit_scale_default = 1;
  bool multipliers = false;           // attention_, embedding_ and residual_multiplier, logits_scaling; defaults 1
  std::string_view clip = {};         // key of AttentionConfig::clip
  bool query_temperature = false;     // llama_4_scaling_beta of rope_parameters
  std::string_view interleaved = {};  // switch of Architecture::hf_interleaved
  bool sinks = false;                 // AttentionConfig::sinks
  std::string_view parallel_residual = {};  // switch; the row's arithmetic holds its default
  std::string_view window_pattern = {};     // overrides the row's period of WindowRule::kPattern
  std::string_view attention_scalar = {};   // scores are divided by its square root; empty: by that of head_dim
  std::string_view head_dim = "head_dim";   // latent attention: of the channels that rotate
  std::size_t head_dim_default = 0;         // 0: hidden_size / heads
  std::size_t kv_heads_default = 0;         // 0: equal to the number of query heads, like null in every class
  std::size_t query_heads_default = 0, vocabulary_default = 0;  // 0: the keys are required
  std::size_t context_default = 2048;                           // max_position_embeddings
  std::size_t window_default = 0;                               // 0: full attention
  bool tied_head_default = false;
  // Keys with the same names in GGUF; empty: no such cap. A default of 0: no cap.
  std::string_view attention_softcap = {}, logit_softcap = {};
  float attention_softcap_default = 0, logit_softcap_default = 0;
};

/// The experts of a model and the layers that have them: [layer].
struct ExpertLayers {
  ExpertsConfig experts;
  std::vector<bool> sparse;
  std::vector<std::size_t> chosen = {};  // experts per token; empty: as `experts` says
};

/// How a family with experts states them.
struct ExpertRules {
  /// Reads config.json. @throws Error kInput, kUnsupported with the JSON pointer.
  ExpertLayers (*read)(const JsonCursor& root, std::size_t layers);
  bool gguf_normalised = false;                 // llama.cpp divides the weights of the chosen experts by their sum
  std::span<const std::string_view> keys = {};  // the keys of config.json that `read` reads, or that have no effect
  std::span<const TensorSpec> tensors = {};     // of a sparse block, instead of Architecture::feed_forward_tensors
  bool hf_joined_transposed = false;            // a tensor of all experts is [expert, column, row]
  // In GGUF: scores if the file does not say, and the activation of the experts.
  ExpertsConfig::Scores gguf_scores = ExpertsConfig::Scores::kSoftmax;
  SwigluClamp gguf_clamp = {};
  std::size_t gguf_group_scores = 2;  // ExpertsConfig::group_scores of softmax scores
};

/// How a family with recurrent blocks states them.
struct RecurrenceRules {
  /// Sets the blocks of `config`'s layers that its other readers do not know, and removes those that a layer lacks.
  /// @throws Error as ExpertRules::read.
  void (*read)(const JsonCursor& root, ParsedConfig& parsed);
  std::span<const std::string_view> keys;  // of config.json that `read` reads
  std::span<const TensorSpec> tensors;     // of a recurrent block, with the norm of its input
  /// Sets the recurrent blocks of a GGUF. Layers without KV heads have no attention. @throws Error with the key.
  void (*read_gguf)(const GgufKeys& keys, ParsedConfig& parsed) = nullptr;
  std::span<const TensorSpec> gguf_joined = {};  // instead of `tensors`, in GGUF files that hold its second one
  bool single_blocks = false;                    // a layer has one block: a mixer or a feed-forward network
};

/// How a family states sizes that differ between layers, or that other families do not have.
struct LayerRules {
  /// Sets them. `config` has its layers with the sizes that all share, and their windows.
  /// @throws Error kInput, kUnsupported with the JSON pointer.
  void (*read)(const JsonCursor& root, ModelConfig& config);
  std::span<const std::string_view> keys;  // of config.json that `read` reads, or that have no effect
  /// Sets the attention of GGUF files instead of the keys of other families; nullptr: they set it.
  void (*read_gguf)(const GgufKeys& keys, ModelConfig& config) = nullptr;
  /// Sets sizes of a GGUF that differ between layers, after the windows, except numbers of heads and widths.
  /// @throws Error with the key.
  void (*read_gguf_sizes)(const GgufKeys& keys, ModelConfig& config) = nullptr;
};

/// A supported family of models. Each is defined in a file of src/model/families; families.h lists all.
struct Architecture {
  std::string_view name;           // in configs and captures
  std::string_view hf_class;       // config.json: architectures[0]
  std::string_view hf_base_class;  // config.json: architectures[0] of a checkpoint written by the class without a head
  std::string_view model_type;     // config.json: model_type
  std::string_view gguf = {};      // general.architecture; empty: another row's name, or not read
  std::string_view gguf_other = {};  // another name of the architecture there
  std::string_view gguf_key = {};    // not empty: this row is for files of the name `gguf` that have the key
  std::span<const TensorSpec> model_tensors = {};  // those of no layer
  // The tensors of a layer's blocks, with the norms of their inputs and outputs, in addition to kRopeTensors.
  std::span<const TensorSpec> attention_tensors = {}, feed_forward_tensors = {};
  Arithmetic arithmetic = {};
  WindowRule windows = WindowRule::kNone;       // in config.json
  WindowRule gguf_windows = WindowRule::kNone;  // in GGUF: attention.sliding_window, or attention.chunk_size
  std::size_t window_period = 1;
  UnrotatedRule unrotated = UnrotatedRule::kNone;
  std::size_t gguf_window_default = 0;          // if the key is missing
  bool gguf_interleaved = false;                // GGUF stores the rows of W_q and W_k as adjacent RoPE pairs
  bool hf_interleaved = false;                  // config.json's weights store them so, too
  bool index_interleaved = false;               // the index of tokens stores them so
  bool hf_norms_less_one = false;               // gains of norms are stored minus 1
  bool hf_composite_names = false;              // the class of text alone reads the names of its composite, too
  std::size_t gguf_wide_scale_layers = 0;       // GGUF: layers of models with score scale 1 / sqrt(d_model / heads)
  const ExpertRules* experts = nullptr;         // nullptr: the family has none
  const RecurrenceRules* recurrence = nullptr;  // nullptr: the family has none
  const LayerRules* layers = nullptr;           // nullptr: all layers have the same sizes
  ConfigKeys keys = {};
  RopeDefaults rope = {};
};

/// @throws Error kUnsupported with the supported names.
const Architecture& architecture_of_hf_class(std::string_view hf_class, std::string_view where);
const Architecture& architecture_of_model_type(std::string_view model_type, std::string_view where);
/// Like architecture_of_model_type(), but returns nullptr if the type is not supported.
const Architecture* find_model_type(std::string_view model_type) noexcept;
/// Returns the row with this name, or nullptr.
const Architecture* find_architecture_named(std::string_view name) noexcept;
/// @param has  returns true if the file has a key of its architecture
const Architecture& architecture_of_gguf(std::string_view gguf, std::string_view where,
                                         const std::function<bool(std::string_view key)>& has);

/// Returns `name` with its first "{}" replaced by `number`.
std::string with_number(std::string_view name, std::size_t number);

}  // namespace kvs::inline model
