// SPDX-License-Identifier: Apache-2.0
#include "model/passes_together.h"

#include <algorithm>

#include "core/free_memory.h"

namespace kvs::inline model {

std::size_t memory_left(const Backend& backend) {
  return backend.device() == "cpu" ? free_memory() : backend.memory_left();
}

std::size_t passes_together(const Model& model, std::size_t tokens, std::size_t kept) {
  constexpr std::size_t kMaxPasses = 64;
  if (model.placement().streamed_layers == 0) return 1;
  // The residual stream of the pass and of its reference, with copies of some rows, and the full cache in f32.
  const ModelConfig& config = model.config();
  const std::size_t pass = kept + tokens * (3 * config.d_model + config.cache_values_per_token()) * sizeof(float);
  return std::clamp<std::size_t>(memory_left(model.backend()) / 2 / std::max<std::size_t>(pass, 1), 1, kMaxPasses);
}

}  // namespace kvs::inline model
