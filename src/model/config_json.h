#pragma once

#include "io/json.h"
#include "model/config.h"

namespace kvs {

/// All that a model computes with beside its tensors, but for its name: equal for two that give the same numbers, so
/// that no run mixes two models which share weights.
Json config_json(const ModelConfig& config);

}  // namespace kvs
