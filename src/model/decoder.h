#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "caches/layer_cache.h"
#include "kernels/backend.h"
#include "model/model.h"

namespace kvs {

/// Reads or replaces the states of layers as they pass.
class StateHook {
 public:
  virtual ~StateHook() = default;
  /// q and k are q_pre and k_pre (after bias and QK-norm), v as projected.
  virtual void before_rope(LayerStates&) {}
  /// q and k are q_post and k_post; v is as before_rope left it. Not called with a cache, which rotates as it likes.
  virtual void after_rope(LayerStates&) {}
};

/// The residual stream at a layer boundary: a forward pass that can be stopped, copied, widened to a batch and resumed.
struct ResidualStream {
  BackendTensor<float, 3> rows;    // [member, token, d_model]
  std::size_t first_position = 0;  // position of token 0
  std::size_t next_layer = 0;      // layers below it are done
  std::size_t positions = 0;       // that rotations use; RoPE's frequencies may depend on it (rope_angles)

  std::size_t members() const noexcept { return rows.view().extent(0); }
  std::size_t tokens() const noexcept { return rows.view().extent(1); }
};

/// The forward pass of every architecture in the table, written against Backend. Peak memory beside the weights: the
/// residual stream and one layer's activations of the batch. Throws Interrupted between layers once a signal is
/// pending.
class Decoder {
 public:
  explicit Decoder(const Model& model);
  ~Decoder();

  const Model& model() const noexcept { return *model_; }

  /// Token embeddings as a batch of one member, ready for layer 0.
  /// @param positions  the length of the document that these are a part of, or of a cache's slots; 0: it ends with them
  ResidualStream embed(std::span<const std::int32_t> tokens, std::size_t first_position = 0, std::size_t positions = 0);
  /// `members` copies of the only member of `hidden`: variants that share everything below a layer.
  ResidualStream repeat(const ResidualStream& hidden, std::size_t members);
  /// Runs layers [hidden.next_layer, last_layer) in place.
  /// @throws Error kData naming the first layer whose activations become NaN or infinite; a hook sees later layers
  /// first.
  /// @param hook   sees each layer's states, or nullptr
  /// @param cache  attends for each layer and keeps its states, or nullptr: the tokens attend to themselves only
  void advance(ResidualStream& hidden, std::size_t last_layer, StateHook* hook = nullptr, Cache* cache = nullptr);
  /// Negative log-likelihood in nats of targets[t] after token t, for each member: [member, token]. All layers must be
  /// done. Tokens whose target is negative are skipped (their entry is 0).
  std::vector<float> nll(const ResidualStream& hidden, std::span<const std::int32_t> targets);
  /// Logits [rows.size(), vocabulary] of some rows (member · token order) of a finished pass: for tests and generation.
  std::vector<float> logits(const ResidualStream& hidden, std::span<const std::size_t> rows);

 private:
  struct ForwardPass;
  Operand final_rows(const ResidualStream& hidden, std::span<const std::size_t> rows);

  const Model* model_;
  std::unique_ptr<ForwardPass> pass_;
};

/// Per-token NLL of one document from scratch: [tokens − 1].
std::vector<float> document_nll(Decoder& decoder, std::span<const std::int32_t> tokens, StateHook* hook = nullptr);

}  // namespace kvs
