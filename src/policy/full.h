#pragma once

#include <memory>

#include "policy/cache_method.h"
#include "policy/token_rows.h"

namespace kvs {

/// Keeps every key and value; of a layer with a sliding window those that its next token may read.
std::unique_ptr<LayerCache> make_full_cache(const StateStore& store = {});
extern const CacheMethod kFullMethod;

}  // namespace kvs
