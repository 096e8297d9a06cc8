// SPDX-License-Identifier: Apache-2.0
#include "results/head.h"

#include <utility>

namespace kvs::inline results {

std::size_t ModelRecord::cache_values(std::size_t layer) const {
  if (!has_cache(layer)) return 0;
  const bool one_row = one_row_layers && std::ranges::find(*one_row_layers, layer) != one_row_layers->end();
  return (one_row ? 1 : 2) * kv_heads.of(layer) * head_dim.of(layer);
}

void ModelRecord::check(const ModelRecord& model, const JsonCursor& json) {
  constexpr std::size_t kMaxSize = 1 << 24;
  const auto check_size = [&](const char* name, std::size_t size) {
    if (size > kMaxSize) json.at(name).fail("at most " + std::to_string(kMaxSize));
  };
  check_size("layers", model.layers);
  for (const auto& [name, sizes] : {std::pair("query_heads", &model.query_heads),
                                    std::pair("kv_heads", &model.kv_heads), std::pair("head_dim", &model.head_dim)}) {
    check_size(name, sizes->most());
    if (sizes->is_list() && sizes->values().size() != model.layers)
      json.at(name).fail("a number, or one for each of " + std::to_string(model.layers) + " layers");
  }
}

}  // namespace kvs::inline results
