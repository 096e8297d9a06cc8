// SPDX-License-Identifier: Apache-2.0
#include "states/in_memory_source.h"

#include <utility>

#include "core/error.h"

namespace kvs::inline states {
void InMemorySource::visit(std::size_t document, const StateNeeds& needs, const Sink& sink) {
  if (needs.x || needs.states.contains(StateKind::kV) || needs.states.contains(StateKind::kKPost))
    throw Error(ErrorCode::kInternal, "HeldSource", "found a need beyond q_pre and k_pre");
  std::vector<Layer>& layers = held_[document];
  if (!layers.empty()) {
    for (const Layer& layer : layers) {
      DocumentStates states;
      states.document = document;
      states.layer = layer.layer;
      states[StateKind::kQPre] = layer.q.view();
      states[StateKind::kKPre] = layer.k.view();
      sink(states);
    }
    return;
  }
  std::vector<Layer> kept;
  bool keep = true, first = true;
  inner_->visit(document, needs, [&](const DocumentStates& states) {
    const auto &q = states[StateKind::kQPre], &k = states[StateKind::kKPre];
    if (std::exchange(first, false)) {  // visits in turns share the limit, so the layers to come are counted here
      const std::size_t bytes = (q.size() + k.size()) * sizeof(float) * needs.layers.size();
      keep = bytes <= left_;
      if (keep) left_ -= bytes;
    }
    if (keep) kept.push_back({states.layer, copy_of(backend(), q), copy_of(backend(), k)});
    sink(states);
  });
  layers = std::move(kept);
}

}  // namespace kvs::inline states
