// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

constexpr std::array<std::string_view, 3> kSglangTypes{"fp8", "fp8_e5m2", "nvfp4"};

std::string obstacle_of_sglang(const EngineCache& cache) {
  if (std::string found = only_types(cache, kSglangTypes); !found.empty()) return found;
  const std::string type = type_of_all(cache);
  if (type == "none") return "";
  if (type != "fp8") return scales_but_one(cache, type);
  const Json &k = cache.parameters.at("scale_k"), &v = cache.parameters.at("scale_v");
  if (k != v) return "found other scales of keys than of values, expected one scale a layer for both";
  if (k.is_array() && !k.empty() && k.front().is_array()) return "found scales by head, expected one a layer";
  return "";
}

EngineUse use_in_sglang(const EngineCache& cache) {
  const std::string type = type_of_all(cache);
  if (type == "none") return {};
  EngineUse use{.flags = "--kv-cache-dtype " + (type == "fp8" ? "fp8_e4m3" : type)};
  if (cache.parameters.at("scale_k") != Json(1.0))
    use.notes.emplace_back("--quantization-param-path FILE.json with the scales of the config");
  return use;
}

}  // namespace

const Engine kSglang{.name = "sglang",
                     .version = "2026-09",
                     .summary = "the full cache in fp8 with one scale a layer, fp8_e5m2 or nvfp4",
                     .types = kSglangTypes,
                     .obstacle = obstacle_of_sglang,
                     .use = use_in_sglang};

}  // namespace kvs::inline engines
