#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "model/model.h"
#include "policy/cache_policy.h"

namespace kvs {

/// What a hook sees of one layer. The views are mutable: what a hook writes is what the layer goes on with.
struct LayerStates {
  Backend& backend;
  std::size_t layer;
  std::size_t first_position;  // of token 0
  RopeTable rope;              // of this layer, for at least the positions of these tokens
  Operand x;  // [member · token, d_model] input of q_proj, k_proj, v_proj, after the layer's norm; read only
  BackendView<float, 4> q;     // [member, query_head, token, head_dim]
  BackendView<float, 4> k, v;  // [member, kv_head, token, head_dim]
};

/// Reads or replaces the states of layers as they pass.
class StateHook {
 public:
  virtual ~StateHook() = default;
  /// q and k are q_pre and k_pre (after bias and QK-norm), v as projected.
  virtual void before_rope(LayerStates&) {}
  /// q and k are q_post and k_post; v is as before_rope left it.
  virtual void after_rope(LayerStates&) {}
};

/// The residual stream at a layer boundary: a forward pass that can be stopped, copied, widened to a batch and resumed.
struct Hidden {
  BackendTensor<float, 3> rows;     // [member, token, d_model]
  std::size_t first_position = 0;   // position of token 0
  std::size_t next_layer = 0;       // layers below it are done
  std::size_t document_tokens = 0;  // of the whole document, which RoPE may depend on (rope_angles)

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
  /// @param document_tokens  length of the document that these are a part of; 0: it ends with them
  Hidden embed(std::span<const std::int32_t> tokens, std::size_t first_position = 0, std::size_t document_tokens = 0);
  /// `members` copies of the only member of `hidden`: variants that share everything below a layer.
  Hidden repeat(const Hidden& hidden, std::size_t members);
  /// Runs layers [hidden.next_layer, last_layer) in place.
  /// @throws Error kData naming the first layer whose activations become NaN or infinite; a hook sees later layers
  /// first.
  /// @param hook   sees each layer's states, or nullptr
  /// @param cache  gives each layer's past and gets its new states, or nullptr: the tokens attend to themselves only
  void advance(Hidden& hidden, std::size_t last_layer, StateHook* hook = nullptr, CachePolicy* cache = nullptr);
  /// Negative log-likelihood in nats of targets[t] after token t, for each member: [member, token]. All layers must be
  /// done. Tokens whose target is negative are skipped (their entry is 0).
  std::vector<float> nll(const Hidden& hidden, std::span<const std::int32_t> targets);
  /// Logits [rows.size(), vocabulary] of some rows (member · token order) of a finished pass: for tests and generation.
  std::vector<float> logits(const Hidden& hidden, std::span<const std::size_t> rows);

 private:
  struct Workspace;
  Operand final_rows(const Hidden& hidden, std::span<const std::size_t> rows);

  const Model* model_;
  std::unique_ptr<Workspace> workspace_;
};

/// Per-token NLL of one document from scratch: [tokens − 1].
std::vector<float> document_nll(Decoder& decoder, std::span<const std::int32_t> tokens, StateHook* hook = nullptr);

}  // namespace kvs
