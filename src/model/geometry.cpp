#include "core/error.h"
#include "model/parsed_config.h"

namespace kvs {

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

}  // namespace kvs
