#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/parsed_config.h"
#include "model/rope_angles.h"

namespace kvs::inline model {

void complete_geometry(ModelConfig& config, std::string_view where, const GeometryKeys& names) {
  const auto fail = [&](const std::string& problem) { throw Error(ErrorCode::kInput, where, problem); };
  const auto text = [](std::string_view name, std::size_t value) {
    return std::string(name) + " " + std::to_string(value);
  };
  if (config.kv_heads > config.query_heads || config.query_heads % config.kv_heads != 0) {
    fail("found " + text(names.query_heads, config.query_heads) + " and " + text(names.kv_heads, config.kv_heads) +
         ", expected the second to divide the first");
  }
  if (config.head_dim == 0) {
    if (config.d_model % config.query_heads != 0) {
      fail("found " + text(names.d_model, config.d_model) + ", no " + std::string(names.head_dim) +
           ", expected a multiple of " + text(names.query_heads, config.query_heads));
    }
    config.head_dim = config.d_model / config.query_heads;
  }
  if (config.head_dim % 2 != 0) {
    fail("found " + text(names.head_dim, config.head_dim) + ", expected an even number (RoPE rotates pairs)");
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
