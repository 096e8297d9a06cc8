// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/norm_order.h"

namespace kvs::inline calibrate {

std::string norm_order_obstacle(const ModelConfig& model) {
  if (!model.arithmetic.norms_after_rope) return {};
  return "found a model that normalises its keys after RoPE (" + model.architecture +
         "), expected one whose keys RoPE changes last";
}

}  // namespace kvs::inline calibrate
