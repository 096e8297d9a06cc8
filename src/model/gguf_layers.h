// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "model/gguf_keys.h"
#include "model/hf_options.h"
#include "model/parsed_config.h"

namespace kvs::inline model {

/// Sizes that a GGUF may state by layer: [layer]. 0: the layer lacks the block.
struct GgufLayerSizes {
  std::vector<std::size_t> query_heads, kv_heads, d_ff;

  /// Returns the first layer with attention.
  std::size_t first_attention() const noexcept;
};

/// Returns true if a family's layers may have several sizes.
inline bool layers_may_differ(const Architecture& row) noexcept {
  return row.recurrence != nullptr || (row.layers != nullptr && row.layers->read_gguf_sizes != nullptr);
}

/// Returns the period of layers of which the last does not rotate: Ollama's key, or llama.cpp's constant.
/// @throws Error kInput with the key.
inline std::size_t gguf_unrotated_interval(const GgufKeys& keys) {
  constexpr std::string_view kInterval = "no_rope_interval";
  return keys.has(kInterval) ? keys.count(kInterval, kMaxLayers) : kUnrotatedInterval;
}

/// Reads the sizes of `layers` layers. @throws Error kInput with the key; kUnsupported for sizes that differ in a
/// family whose layers are all alike; kUnsupported if no layer has attention.
GgufLayerSizes read_gguf_layer_sizes(const GgufKeys& keys, const Architecture& row, std::size_t layers);

/// Sets the sizes of layers and removes the blocks that a layer lacks, then reads the recurrent blocks.
/// @throws Error kInput with the key.
void set_gguf_layer_sizes(const GgufKeys& keys, const GgufLayerSizes& sizes, ParsedConfig& parsed);

}  // namespace kvs::inline model
