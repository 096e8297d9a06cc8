// SPDX-License-Identifier: Apache-2.0
#include "model/recorded_states.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace kvs::inline model {
namespace {

using States = BackendTensor<float, 4>;

/// Joins parts [1, head, tokens of the part, head_dim].
States joined(Backend& backend, const std::vector<RecordedStates::Layer>& parts, States RecordedStates::Layer::*which) {
  std::array<std::size_t, 4> shape = (parts.front().*which).view().shape();
  const std::size_t heads = shape[1], head_dim = shape[3];
  shape[2] = 0;
  for (const RecordedStates::Layer& part : parts) shape[2] += (part.*which).view().extent(2);
  States all(backend, shape);
  for (std::size_t head = 0; head < heads; ++head) {
    float* to = all.view().data() + head * shape[2] * head_dim;
    for (const RecordedStates::Layer& part : parts) {
      const BackendView<float, 4>& from = (part.*which).view();
      const std::size_t values = from.extent(2) * head_dim;
      backend.copy(to, from.data() + head * values, values * sizeof(float));
      to += values;
    }
  }
  return all;
}

}  // namespace

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
  const auto copy = [&](const BackendView<float, 4>& view) {
    return copy_of(states.backend, BackendView<const float, 4>(view));
  };
  backend_ = &states.backend;
  if (calls_.size() <= states.layer) calls_.resize(states.layer + 1);
  calls_[states.layer].push_back({copy(states.q), copy(states.k), copy(states.v)});
}

RecordedStates StateRecorder::take() {
  using Layer = RecordedStates::Layer;
  RecordedStates recorded;
  for (std::vector<Layer>& parts : std::exchange(calls_, {}))
    recorded.layers.push_back(parts.size() == 1
                                  ? std::move(parts.front())
                                  : Layer{joined(*backend_, parts, &Layer::q), joined(*backend_, parts, &Layer::k),
                                          joined(*backend_, parts, &Layer::v)});
  return recorded;
}

}  // namespace kvs::inline model
