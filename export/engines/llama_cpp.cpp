// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "calibrate/common/engine_pairs.h"
#include "export/engines/engines.h"
#include "export/engines/ggml.h"

namespace kvs::inline engines {
namespace {

bool has_one_head_size(const EngineCache& cache) {
  std::set<std::size_t> sizes;
  for (const std::size_t layer : cache.model.cached_layers()) sizes.insert(cache.model.layer[layer].attention.head_dim);
  return sizes.size() < 2;
}

/// llama.cpp rotates quantised rows only if all layers have one head size (src/llama-kv-cache.cpp at 0c1e570).
/// Deviation: its attention on the CPU quantises queries to 8 bits where keys are quantised (ggml-cpu/ops.cpp,
/// vec_dot_type); caches here read the same rows with queries in f32 (docs/engines.md).
std::string obstacle_of_llama_cpp(const EngineCache& cache) {
  if (std::string found = only_full(cache); !found.empty()) return found;
  const auto types = cache.types();
  if (std::ranges::any_of(types, [&](const auto& one) { return one != types.front(); }))
    return "found other types in some layers, expected one pair of types for all";
  if (std::string found = ggml_obstacle(cache); !found.empty()) return found;
  if (has_quantised_rows(cache) && cache.word("rotate") == "on" && !has_one_head_size(cache))
    return "found rotate=on, expected off: llama.cpp does not rotate where heads have several sizes";
  return "";
}

EngineUse use_in_llama_cpp(const EngineCache& cache) {
  const auto types = cache.types();
  const std::string k = types.empty() ? "f16" : ggml_flag(types.front().k),
                    v = types.empty() ? "f16" : ggml_flag(types.front().v);
  EngineUse use{.flags = "-ctk " + k + " -ctv " + v + " -fa on", .notes = {}, .exporter = "llama-cpp"};
  if (cuda_pair(k, v) != CudaPair::kEveryBuild) use.notes.push_back(cuda_pair_text(k, v));
  if (has_quantised_rows(cache) && cache.word("rotate") == "off")
    use.notes.emplace_back("measured without rotation: set LLAMA_ATTN_ROT_DISABLE=1 in the environment");
  return use;
}

}  // namespace

const Engine kLlamaCpp{.name = "llama.cpp",
                       .version = "0c1e570, 2026-09",
                       .summary = "the full cache with one ggml type of keys and one of values",
                       .types = kGgmlPairs,
                       .obstacle = obstacle_of_llama_cpp,
                       .use = use_in_llama_cpp};

}  // namespace kvs::inline engines
