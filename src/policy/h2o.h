#pragma once

#include <cstddef>
#include <memory>

#include "policy/cache_method.h"
#include "policy/token_rows.h"

namespace kvs {

struct H2oOptions {
  std::size_t cache_size = 0;
  std::size_t recent = 0;  // at least 1, fewer than cache_size
};

/// Just before a token that finds `cache_size` tokens, each KV head drops the one of least attention mass (the first of
/// equal ones) that is not among the `recent` last. A token's mass: softmax weights summed over all queries since it
/// came and over the query heads that read the KV head. Keys stay at their positions in the text.
/// O(cache_size) per token, the choice on the host; no row moves but the last, into the dropped one's place.
/// Source: Zhang et al. (2023), H2O, arXiv:2306.14048, algorithm 1. Deviation: heads of a group share one mass, because
/// they share the cache.
std::unique_ptr<LayerCache> make_h2o_cache(const H2oOptions& options, const StateStore& store = {});
extern const CacheMethod kH2oMethod;

}  // namespace kvs
