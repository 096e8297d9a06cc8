// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "caches/token_rows.h"
#include "model/decoder.h"

namespace kvs::inline model {

/// The states before RoPE (LayerStates) of a document's first tokens in every layer.
struct RecordedStates {
  struct Layer {
    RowBuffer q, k, v;  // [1, head, token, head_dim]
  };
  std::vector<Layer> layers;

  std::size_t tokens() const noexcept { return layers.front().q.count(); }
};

/// Returns true if a pass over a document's later tokens needs nothing of the first ones but their states: every layer
/// has keys and values of its own, and no layer has a recurrence or latent attention. False also for norms after RoPE,
/// where some caches normalise keys before they rotate them.
bool can_record(const ModelConfig& model);

/// Returns the bytes of the recorded states of `tokens` tokens, without spare rows of their buffers (RowBuffer).
std::size_t recorded_bytes(const ModelConfig& model, std::size_t tokens);

/// Records the states of a pass that takes a document's tokens in order, in any number of calls.
class StateRecorder final : public StateHook {
 public:
  void before_rope(LayerStates& states) override;
  /// Returns the states of all tokens so far, which are no longer kept here.
  RecordedStates take() { return std::move(recorded_); }

 private:
  RecordedStates recorded_;
};

}  // namespace kvs::inline model
