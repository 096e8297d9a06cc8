// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

constexpr std::array<std::string_view, 2> kMapTypes{"fp8", "nvfp4"};

/// modelopt/torch/export of Model-Optimizer writes FP8_K_NVFP4_V, too, which the reader in vLLM refuses.
std::string obstacle_of_map(const EngineCache& cache) {
  if (std::string found = only_full(cache); !found.empty()) return found;
  if (cache.model.has_latents()) return "found latent attention, expected keys and values of heads";
  for (const auto& [k, v] : cache.types()) {
    if (k != v) return "found " + k + " keys and " + v + " values, expected one type for both";
    if (!is_16_bits(k) && !holds(kMapTypes, k)) return unknown_type(k, kMapTypes);
  }
  return "";
}

EngineUse use_of_map(const EngineCache& cache) {
  if (std::ranges::all_of(cache.types(), [](const auto& one) { return is_16_bits(one.k); })) return {};
  return {.flags = "",
          .notes = {"the checkpoint of `kvcalibrate export --to modelopt-map`, whose map vLLM reads with "
                    "--kv-cache-dtype auto once pull request 56116 is in it"},
          .exporter = "modelopt-map"};
}

}  // namespace

const Engine kVllmModelOpt{.name = "vllm-modelopt",
                           .version = "vLLM #56116 and Model-Optimizer #2272, 2026-09",
                           .summary = "the full cache in fp8, nvfp4 or 16 bits, by layer",
                           .types = kMapTypes,
                           .by_layer = TypesByLayer::kAny,
                           .obstacle = obstacle_of_map,
                           .use = use_of_map};

}  // namespace kvs::inline engines
