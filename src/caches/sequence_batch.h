// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "caches/layer_cache.h"

namespace kvs::inline caches {

/// A sequence that takes one step together with others.
struct BatchSequence {
  Cache* cache = nullptr;
  std::size_t position = 0;  // of its next token
};

/// Returns the cache of a pass whose member n is the next token of sequences[n]: each member attends through its own
/// cache, at its own position. The caches must outlive the result. The pass must not have recurrent blocks or an index
/// of tokens, whose states a batch shares. Cost: a call of each cache.
Cache batch_of(std::span<const BatchSequence> sequences);

}  // namespace kvs::inline caches
