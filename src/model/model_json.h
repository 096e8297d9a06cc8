#pragma once

#include <cstdint>
#include <string>

#include "model/config.h"
#include "results/head.h"

namespace kvs::inline model {

/// The `model` member of a config and of every result. The angles are those of documents of `window` tokens
/// (rope_angles).
ModelRecord model_record(const ModelConfig& model, const std::string& sha256, std::uint64_t window);
Json model_json(const ModelConfig& model, const std::string& sha256, std::uint64_t window);

}  // namespace kvs::inline model
