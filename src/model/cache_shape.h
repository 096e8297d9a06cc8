#pragma once

#include "caches/kv_types.h"
#include "model/config.h"

namespace kvs::inline model {

inline CacheShape cache_shape(const ModelConfig& model) {
  CacheShape shape{model.kv_heads(), model.head_dim(), model.adjacent_pairs};
  for (const LayerConfig& layer : model.layer) shape.windows.push_back(layer.attention.window);
  return shape;
}

}  // namespace kvs::inline model
