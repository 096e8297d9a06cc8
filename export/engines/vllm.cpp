#include <algorithm>
#include <array>

#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

constexpr std::array<std::string_view, 8> kVllmTypes{"fp8",
                                                     "int8_per_token_head",
                                                     "fp8_per_token_head",
                                                     "int4_per_token_head",
                                                     "turboquant_k8v4",
                                                     "turboquant_4bit_nc",
                                                     "turboquant_k3v4_nc",
                                                     "turboquant_3bit_nc"};

/// Returns the type of the layers that are not at 16 bits; "none" if all are.
std::string coded_type(const EngineCache& cache) {
  for (const auto& [k, v] : cache.types())
    if (k != "none") return k;
  return "none";
}

bool is_plain(const std::string& type) { return type == "none" || type == "f16" || type == "bf16"; }

std::string obstacle_of_vllm(const EngineCache& cache) {
  if (std::string found = only_full(cache); !found.empty()) return found;
  const std::string coded = coded_type(cache);
  for (const auto& [k, v] : cache.types()) {
    if (k != v) return "found " + k + " keys and " + v + " values, expected one type for both";
    if (k != "none" && k != coded) return "found " + coded + " and " + k + " in layers, expected one type and 16 bits";
  }
  return is_plain(coded) || holds(kVllmTypes, coded) ? "" : unknown_type(coded, kVllmTypes);
}

EngineUse use_in_vllm(const EngineCache& cache) {
  const std::string coded = coded_type(cache);
  if (is_plain(coded))
    return {.flags = coded == "none" ? "" : "--kv-cache-dtype " + std::string(coded == "f16" ? "float16" : "bfloat16")};
  EngineUse use{.flags = "--kv-cache-dtype " + coded};
  std::string skipped;
  const std::vector<std::size_t> layers = cache.model.cached_layers();
  const auto types = cache.types();
  for (std::size_t n = 0; n < types.size(); ++n)
    if (types[n].is_plain()) skipped += ' ' + std::to_string(layers[n]);
  if (!skipped.empty()) use.flags += " --kv-cache-dtype-skip-layers" + skipped;
  if (coded != "fp8") return use;
  use.exporter = "vllm-fp8";
  use.notes.emplace_back("scales of the checkpoint: `kvcalibrate export --to vllm-fp8`; without them vLLM uses 1");
  return use;
}

}  // namespace

const Engine kVllm{.name = "vllm",
                   .version = "0.33.0",
                   .summary = "the full cache in fp8, a type per token and head, or TurboQuant; some layers at 16 bits",
                   .types = kVllmTypes,
                   .obstacle = obstacle_of_vllm,
                   .use = use_in_vllm};

}  // namespace kvs::inline engines
