#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "eval/elite_model.h"
#include "io/json.h"
#include "model/model.h"

namespace kvs {

/// An elitekv config made ready to run.
struct EliteConfig {
  std::vector<EliteLayer> layers;
  double cache_values_per_token = 0;  // 2rG + d_ckv in its layers, 2Gd in the others
};

/// Why low-rank factors are not defined for a model, as "found …, expected …"; empty if they are. A model that
/// normalises its keys (QK-norm) has none: its keys are no linear function of the block's input.
std::string factor_obstacle(const ModelConfig& model);

/// Reads the factors that `config` (checked by read_config) names and merges them with the model's own rows.
/// Biases stay outside the factors: they are added to what those yield.
/// @throws Error kUnsupported as factor_obstacle() says if there are factors, and for sets per query head on a GQA
/// model (a shared key cannot have them); kInput if a factor is
///         missing or has another shape.
EliteConfig load_elite_config(const Json& config, const std::filesystem::path& path, const ModelSource& source);

}  // namespace kvs
