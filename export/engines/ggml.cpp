// SPDX-License-Identifier: Apache-2.0
#include "export/engines/ggml.h"

#include <algorithm>

#include "export/engines/engines.h"

namespace kvs::inline engines {
namespace {

constexpr std::array<std::string_view, 9> kGgmlTypes{"none", "f16",  "bf16", "q8_0",  "q5_1",
                                                     "q5_0", "q4_1", "q4_0", "iq4_nl"};

}  // namespace

std::string ggml_flag(const std::string& type) { return type == "none" ? "f16" : type; }

bool has_quantised_rows(const EngineCache& cache) {
  return std::ranges::any_of(cache.types(), [](const auto& one) { return !is_16_bits(one.k) || !is_16_bits(one.v); });
}

std::string ggml_obstacle(const EngineCache& cache) {
  if (std::string found = only_full(cache); !found.empty()) return found;
  for (const auto& [k, v] : cache.types())
    for (const std::string& type : {k, v})
      if (!holds(kGgmlTypes, type)) return unknown_type(type, kGgmlTypes);
  if (cache.word("layout") != "engine" && cache.model.adjacent_pairs)
    return "found layout=hf, expected engine: ggml keeps the keys of this family in adjacent pairs";
  return "";
}

}  // namespace kvs::inline engines
