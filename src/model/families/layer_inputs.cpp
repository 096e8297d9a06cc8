// SPDX-License-Identifier: Apache-2.0
#include "model/families/layer_inputs.h"

#include <string>

#include "model/gguf_keys.h"

namespace kvs::inline model {

bool share_kv_layers(std::size_t shared, ModelConfig& config) {
  const std::size_t layers = config.layers(), own = layers - shared;
  const auto is_full = [&](std::size_t index) { return config.window(index) == 0; };
  for (std::size_t index = own; index < layers; ++index) {
    AttentionConfig& reader = config.layer[index].attention;
    for (std::size_t earlier = 0; earlier < own; ++earlier)
      if (is_full(earlier) == is_full(index)) reader.kv_layer = earlier;
    if (!reader.kv_layer) return false;
    reader.one_row = config.layer[*reader.kv_layer].attention.one_row;
  }
  return true;
}

void read_gguf_shared_rows(const GgufKeys& keys, std::size_t otherwise, ModelConfig& config) {
  constexpr std::string_view kShared = "attention.shared_kv_layers";
  const std::size_t shared = keys.has(kShared) ? keys.unsigned_integer(kShared, config.layers()) : otherwise;
  if (!share_kv_layers(shared, config))
    keys.fail(ErrorCode::kInput, kShared,
              "found " + std::to_string(shared) + ", expected " + std::string(kSourceMissing));
}

}  // namespace kvs::inline model
