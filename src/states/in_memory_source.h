// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "states/state_source.h"

namespace kvs::inline states {

/// Keeps q_pre and k_pre of another source in memory, so that searches with several passes run the model once.
/// Documents beyond `limit` bytes are not kept and are recomputed at each visit. Supports q_pre and k_pre only.
class InMemorySource final : public StateSource {
 public:
  InMemorySource(StateSource& inner, std::size_t limit) : inner_(&inner), left_(limit), held_(inner.documents()) {}

  std::size_t documents() const noexcept override { return inner_->documents(); }
  std::size_t tokens() const noexcept override { return inner_->tokens(); }
  Backend& backend() const noexcept override { return inner_->backend(); }
  RopeTable rope(std::size_t layer) const override { return inner_->rope(layer); }
  std::size_t visits_together(std::size_t kept) const override { return inner_->visits_together(kept); }
  /// @throws Error kInternal if anything but q_pre and k_pre is needed.
  void visit(std::size_t document, const StateNeeds& needs, const Sink& sink) override;

 private:
  struct Layer {
    std::size_t layer;
    BackendTensor<float, 3> q, k;
  };
  StateSource* inner_;
  std::size_t left_;
  std::vector<std::vector<Layer>> held_;  // [document][layer]; empty: not kept
};

}  // namespace kvs::inline states
