// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/parsed_config.h"
#include "model/rope_angles.h"

namespace kvs::inline model {

void complete_geometry(AttentionConfig& heads, std::size_t d_model, std::string_view where, const GeometryKeys& names) {
  const auto fail = [&](const std::string& problem) { throw Error(ErrorCode::kInput, where, problem); };
  const auto text = [](std::string_view name, std::size_t value) {
    return std::string(name) + " " + std::to_string(value);
  };
  if (heads.kv_heads > heads.query_heads || heads.query_heads % heads.kv_heads != 0) {
    fail("found " + text(names.query_heads, heads.query_heads) + " and " + text(names.kv_heads, heads.kv_heads) +
         ", expected the second to divide the first");
  }
  if (heads.head_dim == 0) {
    if (d_model % heads.query_heads != 0) {
      fail("found " + text(names.d_model, d_model) + ", no " + std::string(names.head_dim) +
           ", expected a multiple of " + text(names.query_heads, heads.query_heads));
    }
    heads.head_dim = d_model / heads.query_heads;
  }
  if (heads.head_dim % 2 != 0) {
    fail("found " + text(names.head_dim, heads.head_dim) + ", expected an even number (RoPE rotates pairs)");
  }
}

void check_shared_layers(const ModelConfig& config, std::string_view where) {
  const auto sizes = [&](std::size_t layer) {
    const AttentionConfig& heads = config.layer[layer].attention;
    return std::to_string(heads.kv_heads) + " KV heads of " + std::to_string(heads.head_dim) + " channels in layer " +
           std::to_string(layer);
  };
  for (std::size_t layer = 0; layer < config.layers(); ++layer) {
    const AttentionConfig& reader = config.layer[layer].attention;
    if (!reader.kv_layer) continue;
    const AttentionConfig& source = config.layer[*reader.kv_layer].attention;
    if (reader.kv_heads == source.kv_heads && reader.head_dim == source.head_dim) continue;
    throw Error(ErrorCode::kInput, where,
                "found " + sizes(layer) + ", which reads the keys and values of another layer; expected " +
                    sizes(*reader.kv_layer));
  }
}

void check_rope(const ModelConfig& config, std::string_view where) {
  for (const RopeParameters& rope : config.ropes) {
    for (const std::size_t tokens : {std::size_t{1}, 2 * config.context}) {
      const RopeAngles angles = rope_angles(rope, tokens);
      const auto bad = std::ranges::find_if_not(angles.frequencies, [](double value) { return std::isfinite(value); });
      if (bad == angles.frequencies.end() && std::isfinite(angles.factor) && std::isfinite(rope.theta)) continue;
      throw Error(ErrorCode::kInput, where,
                  "found RoPE parameters (theta " + std::to_string(rope.theta) + ", " +
                      std::to_string(rope.rotary_dim) + " channels) that give no finite angles to " +
                      std::to_string(tokens) + " tokens, expected finite ones");
    }
  }
}

}  // namespace kvs::inline model
