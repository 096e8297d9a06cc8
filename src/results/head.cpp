#include "results/head.h"

namespace kvs::inline results {

void ModelRecord::check(const ModelRecord& model, const JsonCursor& json) {
  constexpr std::size_t kMaxSize = 1 << 24;
  const auto check_size = [&](const char* name, std::size_t size) {
    if (size > kMaxSize) json.at(name).fail("at most " + std::to_string(kMaxSize));
  };
  check_size("layers", model.layers);
  check_size("query_heads", model.query_heads);
  check_size("kv_heads", model.kv_heads);
  check_size("head_dim", model.head_dim);
}

}  // namespace kvs::inline results
