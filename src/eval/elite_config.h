#pragma once

#include <filesystem>
#include <vector>

#include "eval/elite_model.h"
#include "io/json.h"
#include "model/model.h"

namespace kvs {

/// An elitekv config made ready to run.
struct EliteConfig {
  std::vector<EliteLayer> layers;
  double cache_reals_per_token = 0;  // 2rG + d_ckv in its layers, 2Gd in the others
};

/// Reads the factors that `config` (checked by read_config) names and merges them with the model's own rows.
/// @throws Error kUnsupported for sets per query head on a GQA model (a shared key cannot have them); kInput if a
/// factor is
///         missing or has another shape.
EliteConfig load_elite_config(const Json& config, const std::filesystem::path& path, const ModelSource& source);

}  // namespace kvs
