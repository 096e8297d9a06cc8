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

}  // namespace kvs::inline exporting
