#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/elitekv/cache.h"
#include "io/json.h"
#include "model/model.h"

namespace kvs {

/// The layers of `config` (checked by read_config) with the factors that it names. @throws as EliteSource.
std::vector<EliteLayer> load_elite_config(const Json& config, const std::filesystem::path& path,
                                          const ModelSource& source);

/// What a layer's products have to know of the model.
/// @param tokens  of a document, which RoPE's factor may depend on
EliteLayerShape elite_layer_shape(const ModelConfig& model, std::size_t layer, std::size_t tokens);

/// The caches of an elitekv config, which share its products. Layers that it does not list keep everything.
class EliteCaches {
 public:
  /// @param tokens  as elite_layer_shape()
  EliteCaches(Backend& backend, const ModelConfig& model, const std::vector<EliteLayer>& layers, std::size_t tokens);
  /// @param stores  how each layer holds its rows; empty: as they come
  Cache make(const std::vector<KvTypes>& stores = {}) const;

 private:
  std::vector<std::shared_ptr<const EliteProducts>> products_;  // [layer]
};

}  // namespace kvs
