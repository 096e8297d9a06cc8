// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/cache.h"

namespace kvs::inline calibrate {

TransformShape transform_shape(const ModelConfig& model, std::size_t layer) {
  const AttentionConfig& attention = model.layer[layer].attention;
  return {attention.kv_heads, attention.head_dim};
}

std::vector<RowSet> row_sets(TransformRows rows, const TransformShape& shape, std::size_t layers) {
  const auto [heads, head_dim] = shape;
  if (rows == TransformRows::kLayer) return {{0, 1, layers * 2 * heads * head_dim}};
  return {{0, heads, head_dim}, {heads * head_dim, heads, head_dim}};
}

}  // namespace kvs::inline calibrate
