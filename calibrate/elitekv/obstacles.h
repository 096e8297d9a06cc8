#pragma once

#include <string>
#include <string_view>

#include "model/config.h"

namespace kvs::inline calibrate {

// Why a part of EliteKV is not defined for a model, as "found …, expected …"; empty if it is.

/// For RoPElite: the model has no rotation.
std::string ropelite_obstacle(const ModelConfig& model);
/// For disjoint elite sets: no two heads of a layer share a chunk.
std::string disjoint_obstacle(const ModelConfig& model);
/// For low-rank factors. A model that normalises its keys (QK-norm) has none, because its keys are not a linear
/// function of the block's input.
std::string factor_obstacle(const ModelConfig& model);

/// @param part  as typed: "kvcalibrate elitekv --rank";  @throws Error kUnsupported if `obstacle` is not empty
void refuse_obstacle(const std::string& obstacle, std::string_view part, const ModelConfig& model);

}  // namespace kvs::inline calibrate
