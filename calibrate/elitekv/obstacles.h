// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/config.h"

namespace kvs::inline calibrate {

// Why a part of EliteKV is not defined for a model, as "found …, expected …"; empty if it is.

/// For RoPElite: the model has no rotation, or changes keys after it.
std::string ropelite_obstacle(const ModelConfig& model);
/// For disjoint elite sets: no two heads of a layer share a chunk.
std::string disjoint_obstacle(const ModelConfig& model);
/// For low-rank factors. A model that normalises its keys (QK-norm) has none, because its keys are not a linear
/// function of the block's input.
std::string factor_obstacle(const ModelConfig& model);

}  // namespace kvs::inline calibrate
