// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "caches/layer_cache.h"

namespace kvs::inline caches {

/// Computes the attention of a whole document through a fresh cache of its layer. The document is cut at the cache's
/// max_tokens_per_call() and at the end of a prefix.
/// @param states  from the document's first token, of one sequence;  @param out  as in LayerCache::attend
/// @return the most stored bytes at any time, not counting a whole prefix before its compression
std::size_t attend_document(LayerCache& cache, const Prefix& prefix, const LayerStates& states, const Operand& out);

/// Wraps `cache` for whole documents: each layer takes a document as one group and cuts it for itself only.
Cache for_documents(Cache cache);

}  // namespace kvs::inline caches
