#pragma once

#include "caches/kv_types.h"
#include "model/config.h"

namespace kvs::inline model {

inline CacheShape cache_shape(const ModelConfig& model) {
  return {model.kv_heads, model.head_dim, model.adjacent_pairs, model.windows};
}

}  // namespace kvs::inline model
