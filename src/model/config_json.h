// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/json.h"
#include "model/config.h"

namespace kvs::inline model {

/// Returns everything that determines a model's results apart from its tensors and name. It is equal for two models
/// that give the same numbers, so that no run mixes two models that share weights.
Json config_json(const ModelConfig& config);

}  // namespace kvs::inline model
