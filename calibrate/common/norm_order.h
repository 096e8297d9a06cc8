// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/config.h"

namespace kvs::inline calibrate {

/// Returns why a method is not possible that needs keys whose last change is RoPE, as "found …, expected …"; empty if
/// the model's keys are such.
std::string norm_order_obstacle(const ModelConfig& model);

}  // namespace kvs::inline calibrate
