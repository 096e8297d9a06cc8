// SPDX-License-Identifier: Apache-2.0
#include "model/recorded_states.h"

#include <algorithm>
#include <cstddef>

namespace kvs::inline model {

bool can_record(const ModelConfig& model) {
  return !model.arithmetic.norms_after_rope && std::ranges::all_of(model.layer, [](const LayerConfig& layer) {
    return layer.has_cache() && !layer.has_recurrence() && !layer.attention.is_latent();
  });
}

std::size_t recorded_bytes(const ModelConfig& model, std::size_t tokens) {
  std::size_t values = 0;
  for (const LayerConfig& layer : model.layer)
    values += (layer.attention.query_heads + 2 * layer.attention.kv_heads) * layer.attention.head_dim;
  return values * tokens * sizeof(float);
}

void StateRecorder::before_rope(LayerStates& states) {
  if (recorded_.layers.size() <= states.layer) recorded_.layers.resize(states.layer + 1);
  RecordedStates::Layer& layer = recorded_.layers[states.layer];
  layer.q.append(states.backend, states.q, 0, states.tokens());
  layer.k.append(states.backend, states.k, 0, states.tokens());
  layer.v.append(states.backend, states.v, 0, states.tokens());
}

}  // namespace kvs::inline model
