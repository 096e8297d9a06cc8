#pragma once

#include <cstddef>

#include "caches/layer_cache.h"

namespace kvs {

/// Attention of a whole document through a fresh cache of its layer, which gets it cut where it has to act and at the
/// end of a prefix.
/// @param states  from the document's first token, of one sequence;  @param out  as in LayerCache::attend
/// @return the most stored bytes at any time, without what a whole prefix was before its compression
std::size_t attend_document(LayerCache& cache, const Prefix& prefix, const LayerStates& states, const Operand& out);

/// `cache` for whole documents: a layer takes one as one group, so that none is cut where another has to act.
Cache for_documents(Cache cache);

}  // namespace kvs
