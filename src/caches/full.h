#pragma once

#include <memory>

#include "caches/kv_types.h"
#include "caches/layer_cache.h"

namespace kvs {

/// Keeps every key and value; of a layer with a sliding window those that its next token may read.
std::unique_ptr<LayerCache> make_full_cache(const KvTypes& types = {});

}  // namespace kvs
