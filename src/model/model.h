// SPDX-License-Identifier: Apache-2.0
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
#include "model/layer_weights.h"
#include "model/rope_table.h"
#include "tokenizer/tokenizer.h"

namespace kvs::inline model {

class LayerInputs;             // model/layer_inputs.h
class LayerStore;              // model/layer_store.h
class ModelTensors;            // model/model_tensors.h
class TokenEmbedding;          // model/token_embedding.h
enum class ModelFormat : int;  // also model/model_tensors.h

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
  std::unique_ptr<TokenEmbedding> embedding_;
  std::unique_ptr<LayerInputs> layer_inputs_;  // nullptr: the model has none
  struct Rope {
    RopeMemory memory;
    std::size_t length_class = 0;
  };
  mutable std::vector<Rope> ropes_;  // [kind]
};

}  // namespace kvs::inline model
