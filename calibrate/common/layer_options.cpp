// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/layer_options.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "io/json.h"

namespace kvs::inline calibrate {

std::vector<std::size_t> chosen_layers(const Options& options, const ModelConfig& model) {
  if (options.text("layers") == "all") return model.cached_layers();
  std::vector<std::size_t> layers = options.indices("layers", model.layers());
  for (const std::size_t layer : layers)
    if (!model.layer[layer].has_cache())
      throw Error(ErrorCode::kUnsupported, "--layers",
                  "found " + std::to_string(layer) + ", which has no KV cache of its own, expected layers with one: " +
                      dump_json(model.cached_layers(), -1));
  return layers;
}

}  // namespace kvs::inline calibrate
