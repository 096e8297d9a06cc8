// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "caches/layer_cache.h"
#include "kernels/backend.h"
#include "model/model.h"

namespace kvs::inline model {

/// Reads or replaces the states of layers during the forward pass. A layer that reads another layer's keys and values
/// is not shown: it reads those that the hook has left.
class StateHook {
 public:
  virtual ~StateHook() = default;
  /// q and k are q_pre and k_pre (after bias and QK-norm); v is the projection.
  virtual void before_rope(LayerStates&) {}
  /// q and k are q_post and k_post; v is as before_rope left it. Not called with a cache, which rotates itself.
  virtual void after_rope(LayerStates&) {}
};

/// Keys and values that later layers read, too: [member, kv_head, token, head_dim].
struct SharedStates {
  BackendTensor<float, 4> k, v;    // k before RoPE
  BackendTensor<float, 4> k_post;  // nothing if a cache has rotated the keys
};

/// The residual stream at a layer boundary. A forward pass can be stopped here, copied, widened to a batch and resumed.
struct ResidualStream {
  BackendTensor<float, 3> rows;    // [member, token, d_model]
  std::size_t first_position = 0;  // position of token 0
  std::size_t next_layer = 0;      // layers below it are done
  std::size_t positions = 0;       // used by rotations; RoPE's frequencies may depend on it (rope_angles)
  std::map<std::size_t, std::shared_ptr<const SharedStates>> shared = {};  // [layer] that later layers read
  /// The positions that each token reads, as the last layer with an index of tokens chose them (LayerStates::chosen).
  std::shared_ptr<const std::vector<std::int32_t>> chosen = nullptr;
  std::vector<BackendTensor<float, 3>> others = {};  // streams other than `rows` (AltUp), until the last layer is done
  /// The inputs that layers have of their own, the same for all members: [layer, token, width]
  std::shared_ptr<const BackendTensor<float, 3>> layer_inputs = nullptr;

  std::size_t members() const noexcept { return rows.view().extent(0); }
  std::size_t tokens() const noexcept { return rows.view().extent(1); }
};

struct ForwardPass;
struct RecordedStates;

/// The forward pass of every architecture in the table, written against Backend. Peak memory in addition to the
/// weights: the residual stream and one layer's activations of the batch. Throws Interrupted between layers on a
/// signal.
class Decoder {
 public:
  explicit Decoder(const Model& model);
  ~Decoder();

  const Model& model() const noexcept { return *model_; }

  /// Returns token embeddings as a batch of one member, ready for layer 0.
  /// @param positions  length of the document that contains the tokens, or of a cache's slots; 0: the tokens end it
  ResidualStream embed(std::span<const std::int32_t> tokens, std::size_t first_position = 0, std::size_t positions = 0);
  /// Returns `members` copies of the only member of `hidden`: variants that share everything below a layer.
  ResidualStream repeat(const ResidualStream& hidden, std::size_t members);
  /// Runs layers [hidden.next_layer, last_layer) in place.
  /// @throws Error kData naming the first layer after which the last token of a member is NaN or infinite; a hook sees
  /// later layers first.
  /// @param hook   sees each layer's states, or nullptr
  /// @param cache  attends for each layer and keeps its states; nullptr: the tokens attend only to themselves
  void advance(ResidualStream& hidden, std::size_t last_layer, StateHook* hook = nullptr, Cache* cache = nullptr);
  /// Shows `cache` tokens [first, first + count) of a recorded pass, layer by layer, like advance() on these tokens
  /// with this cache if they attend as they did in that pass (Cache::full_start()). Cost: what the cache itself
  /// computes.
  /// @param positions  as in embed()
  void replay(const RecordedStates& recorded, std::size_t first, std::size_t count, std::size_t positions,
              Cache& cache);
  /// Returns the negative log-likelihood in nats of targets[t] after token t, for each member: [member, token]. All
  /// layers must be done. A token with a negative target is skipped (its entry is 0).
  std::vector<float> nll(const ResidualStream& hidden, std::span<const std::int32_t> targets);
  /// Returns logits [rows.size(), vocabulary] of some rows (member · token order) of a finished pass (tests,
  /// generation).
  std::vector<float> logits(const ResidualStream& hidden, std::span<const std::size_t> rows);

 private:
  Operand final_rows(const ResidualStream& hidden, std::span<const std::size_t> rows);

  const Model* model_;
  std::unique_ptr<ForwardPass> pass_;
};

/// Returns the per-token NLL of one document, computed from scratch: [tokens − 1].
std::vector<float> document_nll(Decoder& decoder, std::span<const std::int32_t> tokens, StateHook* hook = nullptr);

}  // namespace kvs::inline model
