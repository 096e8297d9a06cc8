// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "caches/cache_shape.h"
#include "model/config.h"

namespace kvs::inline model {

/// Returns the properties of a model that caches need.
inline CacheShape cache_shape(const ModelConfig& model) {
  const bool adjacent = model.adjacent_pairs && !model.has_latents();
  CacheShape shape{.layers = {}, .adjacent_pairs = adjacent ? model.rotary_dim() : 0};
  for (const LayerConfig& layer : model.layer) {
    const AttentionConfig& attention = layer.attention;
    shape.layers.push_back({attention.kv_heads, attention.head_dim, attention.reach(), attention.one_row,
                            attention.kv_layer, attention.is_latent()});
  }
  return shape;
}

}  // namespace kvs::inline model
