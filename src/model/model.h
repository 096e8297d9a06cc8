#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_archive.h"
#include "kernels/backend.h"
#include "model/config.h"
#include "model/rope_table.h"
#include "tokenizer/tokenizer.h"

namespace kvs::inline model {

class LayerInputs;             // model/layer_inputs.h
class LayerStore;              // model/layer_store.h
class ModelTensors;            // model/model_tensors.h
enum class ModelFormat : int;  // also model/model_tensors.h

/// A norm of the architecture; empty if the architecture has none.
struct NormWeights {
  BackendTensor<float, 1> gain, bias;  // bias: NormKind::kLayer only

  std::size_t bytes() const noexcept { return gain.bytes() + bias.bytes(); }
};

/// Gains for a cache of keys that RoPE turns after they are normalised: as RMS norms and rotations commute, keys have
/// the gain 1, and queries the product of both gains.
struct TurnedNorm {
  BackendTensor<float, 1> query_gain, key_gain;  // [head_dim]

  std::size_t bytes() const noexcept { return query_gain.bytes() + key_gain.bytes(); }
};

/// A feed-forward network: of a dense block, of one expert, or of the shared expert.
struct MlpWeights {
  std::unique_ptr<Weight> gate_up;  // rows: gate, up; or up alone
  std::unique_ptr<Weight> down;     // [d_model, width]

  std::size_t bytes() const noexcept { return gate_up == nullptr ? 0 : gate_up->bytes() + down->bytes(); }
};

/// The experts of a sparse block.
struct ExpertWeights {
  std::unique_ptr<Weight> router;                 // [expert, d_model]
  std::vector<float> router_bias;                 // [expert], or empty: route()
  std::vector<MlpWeights> experts;                // empty: the block is dense
  MlpWeights shared;                              // nothing: no shared expert
  std::unique_ptr<Weight> shared_scale;           // [1, d_model]; nullptr: the shared expert's output is not scaled
  std::unique_ptr<Weight> latent_in, latent_out;  // [latent, d_model], [d_model, latent]; nullptr: no latent
  // ExpertsConfig::beside_dense: gains of the router's and the experts' inputs and of both blocks' outputs, [d_model].
  NormWeights router_norm, input_norm, output_norm, dense_output_norm;

  std::size_t bytes() const noexcept;
};

/// A recurrent block. What its kind does not have is empty.
struct RecurrenceWeights {
  std::unique_ptr<Weight> input;                   // rows as in delta_net.cpp, mamba2.cpp, short_convolution.cpp
  BackendTensor<float, 2> taps;                    // [tap, channel]
  BackendTensor<float, 1> taps_bias;               // [channel]
  BackendTensor<float, 1> decay, step_bias, skip;  // [value_head]
  BackendTensor<float, 1> norm;                    // gain of the output
  std::unique_ptr<Weight> output;                  // [d_model, value rows]

  std::size_t bytes() const noexcept;
};

/// The index of tokens of a latent attention (TokenIndexConfig).
struct TokenIndexWeights {
  std::unique_ptr<Weight> query;   // [heads · dim, query_rank]
  std::unique_ptr<Weight> key;     // [dim, d_model]
  NormWeights norm;                // of a key
  std::unique_ptr<Weight> weight;  // of the heads, [heads, d_model]

  std::size_t bytes() const noexcept;
};

/// Latent attention (LatentConfig).
struct LatentWeights {
  std::unique_ptr<Weight> query_latent;             // [query_rank, d_model]; nullptr: queries come from the input
  BackendTensor<float, 1> query_norm;               // gain of the queries' latent
  std::unique_ptr<Weight> query;                    // rows: all heads' channels that do not rotate, then those that do
  std::unique_ptr<Weight> row;                      // [shared key + rank, d_model]
  BackendTensor<float, 1> norm;                     // gain of the latent
  std::vector<std::unique_ptr<Weight>> key_maps;    // [query_head] of [rank, plain_dim]: transposed W_k
  std::vector<std::unique_ptr<Weight>> value_maps;  // [query_head] of [value_dim, rank]: W_v
  TokenIndexWeights index;                          // nothing: the layer has no index of its own

  std::size_t bytes() const noexcept;
};

/// AltUp in one layer, with small matrices in host memory.
struct StreamWeights {
  NormWeights router_norm;         // gain of the router's input, divided by d_model
  std::unique_ptr<Weight> router;  // [stream, d_model]
  std::vector<float> prediction;   // [stream · stream, stream]
  std::vector<float> correction;   // [stream, stream]

  std::size_t bytes() const noexcept { return router == nullptr ? 0 : router->bytes() + router_norm.bytes(); }
};

/// AltUp's projections of each stream but the first: from the embeddings, and to the mean of the last layer's streams.
struct StreamProjections {
  std::vector<std::unique_ptr<Weight>> in, out;  // [d_model, d_model]
};

/// The map of low rank beside an attention block.
struct LaurelWeights {
  std::unique_ptr<Weight> down, up;  // [rank, d_model], [d_model, rank]
  NormWeights norm;                  // of the output, [d_model]

  std::size_t bytes() const noexcept { return down == nullptr ? 0 : down->bytes() + up->bytes() + norm.bytes(); }
};

/// What adds a layer's own input to the residual stream (ModelConfig::layer_inputs).
struct LayerInputWeights {
  std::unique_ptr<Weight> gate;    // [width, d_model]
  std::unique_ptr<Weight> output;  // [d_model, width]
  NormWeights norm;                // of the output, [d_model]

  std::size_t bytes() const noexcept { return gate == nullptr ? 0 : gate->bytes() + output->bytes() + norm.bytes(); }
};

struct LayerWeights {
  NormWeights attention_norm, feed_forward_norm;                // [d_model], of the blocks' inputs
  NormWeights query_norm, key_norm;                             // [head_dim] or [heads · head_dim]
  TurnedNorm turned_norm;                                       // if QkNorm follows RoPE
  NormWeights value_norm;                                       // gains of 1, [head_dim]
  NormWeights attention_output_norm, feed_forward_output_norm;  // [d_model]
  std::unique_ptr<Weight> qkv;          // rows: q heads, k heads, v heads, rotate-half channel order
  LatentWeights latent;                 // instead of qkv
  std::unique_ptr<Weight> output;       // [d_model, query_heads · head_dim], or [d_model, query_heads · value_dim]
  std::unique_ptr<Weight> output_gate;  // [query_heads · head_dim, d_model]; nullptr: the output is not gated
  RecurrenceWeights recurrence;
  BackendTensor<float, 1> sinks;  // [query_head], or empty
  MlpWeights mlp;                 // of a dense block
  ExpertWeights sparse;           // of a sparse block
  LayerInputWeights input;        // nothing: the layer has no input of its own
  StreamWeights streams;          // nothing: the model has one residual stream
  LaurelWeights laurel;           // nothing: no map beside the attention
  float scale = 1;                // multiplies the residual stream after the layer

  std::size_t bytes() const noexcept;  // backend memory held
  /// A norm that the layer has: every layer normalises the input or the output of a block.
  const NormWeights& any_norm() const noexcept;
};

/// Where a model's layers are: in memory, or streamed in every pass because they exceed the budget.
struct WeightPlacement {
  std::size_t streamed_layers = 0;  // the last ones
  std::size_t layer_bytes = 0;
  double seconds_per_layer = 0;  // to load the first one
  std::size_t layers_read = 0;   // streamed layers read so far, the same layer again for each pass or group of passes

  /// Minimum time that streaming adds to a pass if loading is slower than computing.
  double seconds_per_pass() const noexcept { return static_cast<double>(streamed_layers) * seconds_per_layer; }
};

/// A model on disk, opened and checked, without loaded weights: config, tensors, tokenizer.
class ModelSource {
 public:
  /// @param path  a GGUF file, or a folder with config.json and safetensors
  /// @throws Error kInput (missing, malformed, missing tensor, wrong shape: all tensors are checked against the
  /// config), kUnsupported (architecture, tokenizer or quantisation by name; pickles).
  static std::unique_ptr<ModelSource> open(const std::filesystem::path& path);
  virtual ~ModelSource() = default;

  virtual const ModelConfig& config() const noexcept = 0;
  virtual const std::filesystem::path& path() const noexcept = 0;
  /// Returns the SHA-256 over every tensor in the architecture's table (io/tensor_archive.h, model_digest). Cached.
  virtual const std::string& sha256() const = 0;
  /// @throws Error like tokenizer.h; kInput if there is no tokenizer (then use --tokens-file).
  virtual std::unique_ptr<Tokenizer> load_tokenizer() const = 0;
  /// Returns the rows of one projection of `layer` in rotate-half channel order, f32, for J-LRD. kind: 'q', 'k', 'v',
  /// or 'o' for o_proj [d_model, query_heads · head_dim]; in latent attention only 'o', for attended rows.
  virtual std::vector<float> projection(std::size_t layer, char kind) const = 0;  // [heads · head_dim, d_model]
  /// Returns the bias of a projection in the same channel order; empty if it has none.
  virtual std::vector<float> projection_bias(std::size_t layer, char kind) const = 0;  // [heads · head_dim]

  /// Notes for the user: unused tensors, custom code that is not run.
  virtual const std::vector<std::string>& notes() const noexcept = 0;
  virtual const ModelTensors& tensors() const noexcept = 0;
  virtual ModelFormat format() const noexcept = 0;
  /// All tensors of the files, used or not.
  virtual const TensorArchive& archive() const noexcept = 0;

  /// True if configs of the model's other weights are accepted, for example of its bf16 weights for its Q4 file.
  bool takes_other_weights() const noexcept { return takes_other_weights_; }
  void take_other_weights() noexcept { takes_other_weights_ = true; }

 private:
  bool takes_other_weights_ = false;
};

/// A model's weights in a backend's memory.
class Model {
 public:
  /// Loads every tensor. @throws Error kData if a weight is NaN or infinite (tensor, flat index, count); kEnvironment
  /// if there is not enough memory.
  /// @param source    must outlive the model if layers are streamed (placement())
  /// @param progress  called with (layers done, layers)
  /// @param budget    bytes of the backend's memory for layers and head, without the embedding; 0: most of the free
  /// memory. Layers beyond the budget are streamed: each is read from its files in every pass, while the previous one
  /// computes. The results are the same
  Model(const ModelSource& source, Backend& backend, const std::function<void(std::size_t, std::size_t)>& progress = {},
        std::size_t budget = 0);
  ~Model();

  const ModelConfig& config() const noexcept { return config_; }
  Backend& backend() const noexcept { return *backend_; }
  /// The reference is valid until another layer is requested.
  const LayerWeights& layer(std::size_t index) const;
  const WeightPlacement& placement() const noexcept;
  const Weight& head() const noexcept { return *head_; }
  const NormWeights& final_norm() const noexcept { return final_norm_; }
  const StreamProjections& stream_projections() const noexcept { return streams_; }
  /// Returns cos and sin of `layer` in documents of `tokens` tokens, for at least their positions (rope_angles() says
  /// what depends on the length). The views are valid until a call for the same kind of layer with more tokens or other
  /// angles.
  RopeTable rope(std::size_t layer, std::size_t tokens) const;
  /// Returns the inputs that layers have of their own, [layer, token, width]; nothing if the model has none. Their
  /// embeddings are read from the model's files: the source must outlive the model.
  /// @param embedded  embed()'s result. @throws Error like embed()
  std::shared_ptr<const BackendTensor<float, 3>> layer_inputs(std::span<const std::int32_t> tokens,
                                                              BackendView<const float, 2> embedded) const;
  /// Writes embeddings to `out` [token, d_model], scaled if the architecture scales them. @throws Error kInput if an id
  /// is outside the vocabulary.
  void embed(std::span<const std::int32_t> tokens, BackendView<float, 2> out) const;
  /// Names of the projections whose weights are all zero; of the streamed layers, only the first is checked.
  const std::vector<std::string>& zero_projections() const noexcept { return zero_projections_; }
  /// Backend memory that the weights occupy permanently.
  std::size_t weight_bytes() const noexcept;

 private:
  ModelConfig config_;
  Backend* backend_;
  std::vector<std::string> zero_projections_;
  bool loaded_ = false;
  std::unique_ptr<LayerStore> layers_;
  std::unique_ptr<Weight> head_;
  NormWeights final_norm_;
  StreamProjections streams_;
  struct Embedding;
  std::unique_ptr<Embedding> embedding_;
  std::unique_ptr<LayerInputs> layer_inputs_;  // nullptr: the model has none
  struct Rope {
    RopeMemory memory;
    std::size_t length_class = 0;
  };
  mutable std::vector<Rope> ropes_;  // [kind]
};

}  // namespace kvs::inline model
