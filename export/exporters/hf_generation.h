// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Exporter::obstacle of QuantizedCache.
std::string quantized_cache_obstacle(const ModelConfig& model);

/// Writes a generation_config.json with Transformers' QuantizedCache. It contains the members of the model's own file,
/// or the ids of its special tokens, and the cache. The arithmetic of quanto differs from that of KIVI: groups of keys
/// are runs of one token's channels, and a prompt is quantised as a whole.
Json write_hf_generation(const ExportJob& job);

}  // namespace kvs::inline exporting
