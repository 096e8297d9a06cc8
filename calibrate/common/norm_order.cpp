// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/norm_order.h"

namespace kvs::inline calibrate {

std::string norm_order_obstacle(const ModelConfig& model) {
  if (!model.arithmetic.norms_after_rope) return {};
  return "found a model that normalises its keys after RoPE (" + model.architecture +
         "), expected one whose keys RoPE changes last";
}

std::string own_rows_obstacle(const ModelConfig& model) {
  for (const std::size_t layer : model.cached_layers()) {
    if (model.layer[layer].attention.one_row)
      return "found layers whose keys and values come from one row, expected keys and values with rows of their own";
    if (model.is_read(layer))
      return "found layers that read the keys and values of others, expected layers that read their own";
  }
  return "";
}

}  // namespace kvs::inline calibrate
