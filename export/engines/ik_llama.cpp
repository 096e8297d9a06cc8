// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "export/engines/engines.h"
#include "export/engines/ggml.h"

namespace kvs::inline engines {
namespace {

/// The types of keys, or of values, as ik_llama.cpp is told them: one type, and others in the first and last layers.
struct EndTypes {
  std::string middle, first = {}, last = {};
  std::size_t first_layers = 0, last_layers = 0;  // of the model, with those that have no KV cache
};

/// Layers with one type that follow each other: indices [from, to) of the layers with a KV cache.
struct TypeRun {
  std::string type;
  std::size_t from, to;
};

std::vector<TypeRun> runs_of(const std::vector<std::string>& types) {
  std::vector<TypeRun> runs;
  for (std::size_t n = 0; n < types.size(); ++n)
    if (runs.empty() || runs.back().type != types[n])
      runs.push_back({types[n], n, n + 1});
    else
      runs.back().to = n + 1;
  return runs;
}

/// Returns the types of one side; nullopt if they change more often than from the first to the middle to the last.
/// @param types  [layer with a KV cache], at least one
std::optional<EndTypes> ends_of(const std::vector<std::string>& types, const ModelConfig& model) {
  const std::vector<TypeRun> runs = runs_of(types);
  if (runs.size() > 3) return std::nullopt;
  const bool starts = runs.size() == 3 || (runs.size() == 2 && runs[0].to <= runs[1].to - runs[1].from);
  const bool ends = runs.size() == 3 || (runs.size() == 2 && !starts);
  const std::vector<std::size_t> cached = model.cached_layers();
  EndTypes found{.middle = runs[starts ? 1 : 0].type};
  if (starts) {
    found.first = runs.front().type;
    found.first_layers = cached[runs.front().to - 1] + 1;
  }
  if (ends) {
    found.last = runs.back().type;
    found.last_layers = model.layers() - cached[runs.back().from];
  }
  return found;
}

/// Returns the types of keys and of values.
std::array<std::vector<std::string>, 2> sides_of(const EngineCache& cache) {
  std::array<std::vector<std::string>, 2> sides;
  for (const auto& [k, v] : cache.types()) {
    sides[0].push_back(ggml_flag(k));
    sides[1].push_back(ggml_flag(v));
  }
  return sides;
}

/// src/llama.cpp at 8337e4c, llama_kv_cache_init: rows of latent attention have the type of -ctk in all layers.
std::string obstacle_of_ik_llama(const EngineCache& cache) {
  if (std::string found = ggml_obstacle(cache); !found.empty()) return found;
  if (has_quantised_rows(cache) && cache.word("rotate") == "on")
    return "found rotate=on, expected off: its rotation (-khad, -vhad) was not compared";
  for (const std::vector<std::string>& side : sides_of(cache)) {
    if (side.empty()) continue;
    if (cache.model.has_latents() && runs_of(side).size() > 1)
      return "found other types in some layers and latent attention, expected one type, which its rows have";
    if (!ends_of(side, cache.model))
      return "found types that change in the middle, expected other types in the first and last layers alone";
  }
  return "";
}

EngineUse use_in_ik_llama(const EngineCache& cache) {
  const auto [keys, values] = sides_of(cache);
  if (keys.empty()) return {.flags = "-fa on"};
  const EndTypes k = *ends_of(keys, cache.model), v = *ends_of(values, cache.model);
  EngineUse use{.flags = "-ctk " + k.middle + " -ctv " + v.middle + " -fa on"};
  const auto add = [&](const char* flag, const std::string& type, std::size_t layers) {
    if (layers > 0) use.flags += std::string(" ") + flag + ' ' + type + ',' + std::to_string(layers);
  };
  add("-ctk-first", k.first, k.first_layers);
  add("-ctv-first", v.first, v.first_layers);
  add("-ctk-last", k.last, k.last_layers);
  add("-ctv-last", v.last, v.last_layers);
  if (std::ranges::find(keys, "q4_0") != keys.end() || std::ranges::find(values, "q4_0") != values.end())
    use.notes.emplace_back("ik_llama.cpp fits the scales of q4_0 by least squares; measured with those of llama.cpp");
  return use;
}

}  // namespace

const Engine kIkLlama{
    .name = "ik_llama.cpp",
    .version = "8337e4c, 2026-08",
    .summary = "the full cache in ggml types without rotation; other types in the first and in the last layers",
    .types = kGgmlPairs,
    .by_layer = TypesByLayer::kEnds,
    .settings = "rotate=off",
    .obstacle = obstacle_of_ik_llama,
    .use = use_in_ik_llama};

}  // namespace kvs::inline engines
