// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "caches/kv_types.h"
#include "caches/layer_cache.h"

namespace kvs::inline caches {

/// Creates a cache that keeps every key and value; with a sliding window or chunks, those that the next token may read.
std::unique_ptr<LayerCache> make_full_cache(const KvTypes& types = {});

}  // namespace kvs::inline caches
