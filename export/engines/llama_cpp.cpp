#include <algorithm>
#include <array>
#include <set>

#include "calibrate/common/engine_pairs.h"
#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

constexpr std::array<std::string_view, 9> kGgmlTypes{"none", "f16",  "bf16", "q8_0",  "q5_1",
                                                     "q5_0", "q4_1", "q4_0", "iq4_nl"};
constexpr std::array<std::string_view, 10> kGgmlPairs{"q8_0",   "q5_1",      "q5_0",      "q4_1",      "q4_0",
                                                      "iq4_nl", "q8_0/q4_0", "q8_0/q5_1", "q5_1/q4_0", "q8_0/iq4_nl"};

bool is_quantised(const std::string& type) { return type != "none" && type != "f16" && type != "bf16"; }

/// Returns the name of a type as llama.cpp takes it: 16 bits are f16 by default.
std::string flag_of(const std::string& type) { return type == "none" ? "f16" : type; }

std::string unknown_types(const EngineCache& cache) {
  for (const auto& [k, v] : cache.types())
    for (const std::string& type : {k, v})
      if (!holds(kGgmlTypes, type)) return unknown_type(type, kGgmlTypes);
  if (cache.word("layout") != "engine" && cache.model.adjacent_pairs)
    return "found layout=hf, expected engine: ggml keeps the keys of this family in adjacent pairs";
  return "";
}

bool has_quantised(const EngineCache& cache) {
  return std::ranges::any_of(cache.types(), [](const auto& one) { return is_quantised(one.k) || is_quantised(one.v); });
}

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
  if (std::string found = unknown_types(cache); !found.empty()) return found;
  if (has_quantised(cache) && cache.word("rotate") == "on" && !has_one_head_size(cache))
    return "found rotate=on, expected off: llama.cpp does not rotate where heads have several sizes";
  return "";
}

EngineUse use_in_llama_cpp(const EngineCache& cache) {
  const auto types = cache.types();
  const std::string k = types.empty() ? "f16" : flag_of(types.front().k),
                    v = types.empty() ? "f16" : flag_of(types.front().v);
  EngineUse use{.flags = "-ctk " + k + " -ctv " + v + " -fa on", .notes = {}, .exporter = "llama-cpp"};
  if (cuda_pair(k, v) != CudaPair::kEveryBuild) use.notes.push_back(cuda_pair_text(k, v));
  if (has_quantised(cache) && cache.word("rotate") == "off")
    use.notes.emplace_back("measured without rotation: set LLAMA_ATTN_ROT_DISABLE=1 in the environment");
  return use;
}

/// Layers that have other types than those in the middle, at both ends.
struct Ends {
  std::size_t first = 0, last = 0;
  bool are_uniform = true;
};
Ends ends_of(const std::vector<EngineCache::Types>& types) {
  Ends ends;
  const EngineCache::Types& middle = types[types.size() / 2];
  while (types[ends.first] != middle) ++ends.first;
  while (types[types.size() - 1 - ends.last] != middle) ++ends.last;
  for (std::size_t n = 0; n < types.size(); ++n) {
    const auto& expected = n < ends.first ? types.front() : n >= types.size() - ends.last ? types.back() : middle;
    ends.are_uniform = ends.are_uniform && types[n] == expected;
  }
  return ends;
}

std::string obstacle_of_ik_llama(const EngineCache& cache) {
  if (std::string found = only_full(cache); !found.empty()) return found;
  if (std::string found = unknown_types(cache); !found.empty()) return found;
  if (has_quantised(cache) && cache.word("rotate") == "on")
    return "found rotate=on, expected off: its rotation (-khad, -vhad) was not compared";
  const auto types = cache.types();
  if (!types.empty() && !ends_of(types).are_uniform)
    return "found types that change in the middle, expected other types in the first and last layers alone";
  return "";
}

EngineUse use_in_ik_llama(const EngineCache& cache) {
  const auto types = cache.types();
  if (types.empty()) return {.flags = "-fa on"};
  const Ends ends = ends_of(types);
  const EngineCache::Types& middle = types[types.size() / 2];
  std::string flags = "-ctk " + flag_of(middle.k) + " -ctv " + flag_of(middle.v) + " -fa on";
  const auto add = [&](const char* where, const EngineCache::Types& end, std::size_t layers) {
    if (layers == 0) return;
    flags += std::string(" -ctk-") + where + ' ' + flag_of(end.k) + ',' + std::to_string(layers) + " -ctv-" + where +
             ' ' + flag_of(end.v) + ',' + std::to_string(layers);
  };
  add("first", types.front(), ends.first);
  add("last", types.back(), ends.last);
  return {.flags = flags};
}

}  // namespace

const Engine kLlamaCpp{.name = "llama.cpp",
                       .version = "0c1e570, 2026-09",
                       .summary = "the full cache with one ggml type of keys and one of values",
                       .types = kGgmlPairs,
                       .obstacle = obstacle_of_llama_cpp,
                       .use = use_in_llama_cpp};

const Engine kIkLlama{
    .name = "ik_llama.cpp",
    .version = "#1599, 2026",
    .summary = "the full cache in ggml types without rotation; other types in the first and last layers",
    .types = kGgmlPairs,
    .settings = "rotate=off",
    .obstacle = obstacle_of_ik_llama,
    .use = use_in_ik_llama};

}  // namespace kvs::inline engines
