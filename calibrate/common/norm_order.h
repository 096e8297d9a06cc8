// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/config.h"

namespace kvs::inline calibrate {

/// Returns why a method is not possible that needs keys whose last change is RoPE, as "found …, expected …"; empty if
/// the model's keys are such.
std::string norm_order_obstacle(const ModelConfig& model);

/// The obstacle of methods that store each layer's keys and values as rows of their own; else empty.
std::string own_rows_obstacle(const ModelConfig& model);

}  // namespace kvs::inline calibrate
