// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/window_notes.h"

#include <algorithm>

namespace kvs::inline calibrate {

std::vector<std::string> window_notes(const ModelConfig& model) {
  const auto limited =
      std::ranges::count_if(model.layer, [](const LayerConfig& layer) { return layer.attention.reach() != 0; });
  if (limited == 0) return {};
  return {std::to_string(limited) + " of " + std::to_string(model.layers()) + " layers read a " +
          (model.has_chunks() ? "chunk" : "sliding window") + ": what lies outside it costs nothing there"};
}

}  // namespace kvs::inline calibrate
