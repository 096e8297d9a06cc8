// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "io/json.h"

namespace kvs::inline exporting {

/// The files of a checkpoint that state how vLLM stores the cache, with the scheme of an fp8 cache added.
struct CacheScheme {
  std::map<std::string, Json> files;  // by name: config.json, hf_quant_config.json
  Json scheme;                        // kv_cache_scheme
  bool needs_flag = false;            // true: vLLM takes the scales, but --kv-cache-dtype fp8 has to be given
};

/// Reads the files of the checkpoint in `folder`. Checkpoints without quantised weights get the scheme of
/// compressed-tensors. Those of compressed-tensors, fp8 and ModelOpt keep theirs, with the cache's part added.
/// @param by_head  true: scales of each KV head
/// @throws Error kUnsupported for another quant_method, for scales by head in fp8 and ModelOpt, and for a checkpoint
/// that has a scheme of the cache already; kInput
CacheScheme with_fp8_cache(const std::filesystem::path& folder, bool by_head);

/// Returns the files with the map of a cache by layer, as Model-Optimizer writes it for weights of 16 bits.
/// @param map    kv_cache_quantized_layers: layers that it leaves out are at 16 bits
/// @param alike  all layers with a KV cache have one type, so that no reader needs the map
/// @throws Error kUnsupported for a checkpoint with quantised weights; kInput
CacheScheme with_layer_map(const std::filesystem::path& folder, const Json& map, bool alike);

}  // namespace kvs::inline exporting
