// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

constexpr std::array<std::string_view, 10> kVllmTypes{"fp8",
                                                      "fp8_e5m2",
                                                      "nvfp4",
                                                      "int8_per_token_head",
                                                      "fp8_per_token_head",
                                                      "int4_per_token_head",
                                                      "turboquant_k8v4",
                                                      "turboquant_4bit_nc",
                                                      "turboquant_k3v4_nc",
                                                      "turboquant_3bit_nc"};

constexpr std::size_t kTurboQuantEnds = 2;

/// Returns the type of the layers that are not at 16 bits; if all are, their type.
std::string coded_type(const EngineCache& cache) {
  std::string found = "none";
  for (const auto& [k, v] : cache.types()) {
    if (!is_16_bits(k)) return k;
    if (found == "none") found = k;
  }
  return found;
}

/// vLLM adds the first and the last two layers to its skip list for TurboQuant, except in hybrid models
/// (TurboQuantConfig.get_boundary_skip_layers).
std::string turboquant_obstacle(const EngineCache& cache) {
  if (cache.model.has_recurrence()) return "";
  const std::size_t layers = cache.model.layers(), ends = std::min(kTurboQuantEnds, layers / 2);
  const std::vector<std::size_t> cached = cache.model.cached_layers();
  const auto types = cache.types();
  for (std::size_t n = 0; n < types.size(); ++n)
    if ((cached[n] < ends || cached[n] >= layers - ends) && types[n].k.starts_with("turboquant"))
      return "found " + types[n].k + " in layer " + std::to_string(cached[n]) +
             ", expected 16 bits, at which vLLM keeps the first and the last two layers";
  return "";
}

std::string obstacle_of_vllm(const EngineCache& cache) {
  if (std::string found = only_full(cache); !found.empty()) return found;
  const std::string coded = coded_type(cache);
  if (cache.model.has_latents() && !is_16_bits(coded) && coded != "fp8")
    return "found " + coded + " and latent attention, expected fp8: the other types hold keys and values of heads";
  for (const auto& [k, v] : cache.types()) {
    if (k != v) return "found " + k + " keys and " + v + " values, expected one type for both";
    if (k != coded && !(is_16_bits(coded) ? k == "none" : is_16_bits(k)))
      return "found " + coded + " and " + k + " in layers, expected one type and 16 bits";
  }
  if (!is_16_bits(coded) && !holds(kVllmTypes, coded)) return unknown_type(coded, kVllmTypes);
  if (std::string found = turboquant_obstacle(cache); !found.empty()) return found;
  return coded == "fp8_e5m2" ? scales_but_one(cache, coded) : "";
}

EngineUse use_in_vllm(const EngineCache& cache) {
  const std::string coded = coded_type(cache);
  if (is_16_bits(coded))
    return {.flags = coded == "none" ? "" : "--kv-cache-dtype " + std::string(coded == "f16" ? "float16" : "bfloat16")};
  EngineUse use{.flags = "--kv-cache-dtype " + coded, .notes = {}, .exporter = "vllm-flags"};
  std::string skipped;
  const std::vector<std::size_t> layers = cache.model.cached_layers();
  const auto types = cache.types();
  for (std::size_t n = 0; n < types.size(); ++n)
    if (is_16_bits(types[n].k)) skipped += ' ' + std::to_string(layers[n]);
  if (!skipped.empty()) use.flags += " --kv-cache-dtype-skip-layers" + skipped;
  if (coded == "nvfp4" && !scales_but_one(cache, coded).empty())
    use.notes.emplace_back("scales of the checkpoint, as ModelOpt writes them (kv_cache_quant_algo NVFP4); else 1");
  if (coded != "fp8") return use;
  use.exporter = "vllm-fp8";
  use.notes.emplace_back("scales of the checkpoint: `kvcalibrate export --to vllm-fp8`; without them vLLM uses 1");
  return use;
}

/// vLLM renames self_attn.k_scale to its parameter self_attn.attn.k_scale, but not when it loads the family of Qwen3.5
/// (issue 54623), which takes the parameter's name itself.
std::string_view scale_module_of(const ModelConfig& model) {
  return model.architecture.starts_with("qwen3_5") ? "self_attn.attn" : "self_attn";
}

}  // namespace

const Engine kVllm{.name = "vllm",
                   .version = "0.33.0",
                   .summary =
                       "the full cache in fp8, fp8_e5m2, nvfp4, a type per token and head, or TurboQuant; some "
                       "layers at 16 bits",
                   .types = kVllmTypes,
                   .by_layer = TypesByLayer::kSkipped,
                   .obstacle = obstacle_of_vllm,
                   .use = use_in_vllm,
                   .scale_module = scale_module_of};

}  // namespace kvs::inline engines
