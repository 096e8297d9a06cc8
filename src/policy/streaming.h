#pragma once

#include <cstddef>
#include <memory>

#include "policy/cache_method.h"

namespace kvs {

struct StreamingOptions {
  std::size_t cache_size = 0, sinks = 4;
};

/// A token attends to the first `sinks` tokens and to the last cache_size − sinks ones, itself included, as if they
/// stood in slots 0 to cache_size − 1.
/// Scores depend on distances alone, so the recent keys stay as they were rotated; only the sinks are turned anew for
/// each token. O(sinks) per token beside the attention.
/// Source: Xiao et al. (2024), StreamingLLM, arXiv:2309.17453, section 3.2.
std::unique_ptr<LayerCache> make_streaming_cache(const StreamingOptions& options, const StateStore& store = {});
extern const CacheMethod kStreamingMethod;

}  // namespace kvs
