// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model/config.h"
#include "results/head.h"

namespace kvs::inline model {

/// Returns a size of the layers: one value if all layers with a KV cache share it, otherwise a list with 0 for layers
/// without a cache.
LayerSizes sizes_of(const ModelConfig& model, std::size_t AttentionConfig::*size);
/// Returns the rotated channels: one value if all kinds of RoPE share it, otherwise a list by kind.
LayerSizes rotary_sizes_of(const ModelConfig& model);

/// The `model` member of a config and of every result. The angles are those of documents of `window` tokens
/// (rope_angles).
ModelRecord model_record(const ModelConfig& model, const std::string& sha256, std::uint64_t window);
Json model_json(const ModelConfig& model, const std::string& sha256, std::uint64_t window);

}  // namespace kvs::inline model
