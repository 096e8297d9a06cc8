// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "caches/cache_shape.h"
#include "calibrate/elitekv/cache.h"
#include "io/json.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// Returns the layers of `config` (checked by read_config()) with its factors. @throws like EliteSource.
std::vector<EliteLayer> load_elite_config(const Json& config, const std::filesystem::path& path,
                                          const ModelSource& source);

/// Returns the properties of the model that a layer's products need.
/// @param tokens  of a document; RoPE's factor may depend on it
EliteLayerShape elite_layer_shape(const ModelConfig& model, std::size_t layer, std::size_t tokens);

/// The caches of an elitekv config, which share its products. Layers that the config does not list keep everything.
class EliteCaches {
 public:
  /// @param tokens  as for elite_layer_shape()
  EliteCaches(Backend& backend, const ModelConfig& model, const std::vector<EliteLayer>& layers, std::size_t tokens);
  /// @param stores  how each layer stores its rows; empty: unchanged
  Cache make(const std::vector<KvTypes>& stores = {}) const;

 private:
  CacheShape shape_;
  std::vector<std::shared_ptr<const EliteProducts>> products_;  // [layer]
};

}  // namespace kvs::inline calibrate
