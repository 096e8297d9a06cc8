// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/state_kind.h"
#include "kernels/backend.h"

namespace kvs::inline states {

/// One layer's states of one document, in backend memory: q_pre [query_head, token, head_dim], the others [kv_head,
/// token, head_dim]. Views that were not requested are empty.
struct DocumentStates : ByState<BackendView<const float, 3>> {
  std::size_t document = 0;
  std::size_t layer = 0;
  Operand x;  // [token, d_model], the layer's input; empty for a capture
};

struct StateNeeds {
  std::vector<std::size_t> layers;  // ascending
  StateSet states{};
  bool x = false;
};

/// Source of states: a capture or a live model. Analyses use only this interface.
class StateSource {
 public:
  using Sink = std::function<void(const DocumentStates&)>;
  virtual ~StateSource() = default;

  virtual std::size_t documents() const noexcept = 0;
  virtual std::size_t tokens() const noexcept = 0;  // per document
  virtual Backend& backend() const noexcept = 0;
  /// Returns the RoPE of a layer for positions 0 … tokens − 1. Valid until the next call for another layer.
  virtual RopeTable rope(std::size_t layer) const = 0;
  /// Returns the number of visits that run in turns (turns/turns.h), so that they share what the source reads for each
  /// of them: the streamed layers of a live model. 1: visits share nothing.
  /// @param kept  bytes that the caller keeps for each visit until it ends
  virtual std::size_t visits_together(std::size_t kept) const {
    (void)kept;
    return 1;
  }
  /// Calls `sink` for every needed layer of `document`, in ascending order. The views are valid during the call only.
  /// Visits in turns give way to each other between layers, never within `sink`: every layer gets the documents in
  /// their order.
  virtual void visit(std::size_t document, const StateNeeds& needs, const Sink& sink) = 0;
};

}  // namespace kvs::inline states
