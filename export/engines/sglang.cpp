#include <array>

#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

std::string obstacle_of_sglang(const EngineCache& cache) {
  if (std::string found = only_fp8(cache); !found.empty()) return found;
  const Json &k = cache.parameters.at("scale_k"), &v = cache.parameters.at("scale_v");
  if (has_fp8(cache) && k != v) return "found other scales of keys than of values, expected one scale a layer for both";
  if (k.is_array() && !k.empty() && k.front().is_array()) return "found scales by head, expected one a layer";
  return "";
}

EngineUse use_in_sglang(const EngineCache& cache) {
  if (!has_fp8(cache)) return {};
  EngineUse use{.flags = "--kv-cache-dtype fp8_e4m3"};
  if (cache.parameters.at("scale_k") != Json(1.0))
    use.notes.emplace_back("--quantization-param-path FILE.json with the scales of the config");
  return use;
}

}  // namespace

const Engine kSglang{.name = "sglang",
                     .version = "2026-09",
                     .summary = "the full cache in fp8 with one scale a layer",
                     .types = kFp8Types,
                     .obstacle = obstacle_of_sglang,
                     .use = use_in_sglang};

}  // namespace kvs::inline engines
