#pragma once

#include <memory>

#include "caches/layer_cache.h"
#include "caches/row_store.h"

namespace kvs {

/// Keeps every key and value; of a layer with a sliding window those that its next token may read.
std::unique_ptr<LayerCache> make_full_cache(const StateStore& store = {});

}  // namespace kvs
