#include "capture/held_source.h"

#include "core/error.h"

namespace kvs {
void HeldSource::visit(std::size_t document, const StateNeeds& needs, const Sink& sink) {
  if (needs.x || needs.v || needs.k_post)
    throw Error(ErrorCode::kInternal, "HeldSource", "found a need beyond q_pre and k_pre");
  std::vector<Layer>& layers = held_[document];
  if (!layers.empty()) {
    for (const Layer& layer : layers) {
      DocumentStates states;
      states.document = document;
      states.layer = layer.layer;
      states.q_pre = layer.q.view();
      states.k_pre = layer.k.view();
      sink(states);
    }
    return;
  }
  std::vector<Layer> kept;
  bool keep = true;
  inner_->visit(document, needs, [&](const DocumentStates& states) {
    const std::size_t bytes = (states.q_pre.size() + states.k_pre.size()) * sizeof(float);
    keep = keep && bytes * needs.layers.size() <= left_;
    if (keep) kept.push_back({states.layer, copy_of(backend(), states.q_pre), copy_of(backend(), states.k_pre)});
    sink(states);
  });
  if (!keep) return;
  for (const Layer& layer : kept) left_ -= layer.q.bytes() + layer.k.bytes();
  layers = std::move(kept);
}

}  // namespace kvs
