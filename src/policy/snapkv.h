#pragma once

#include <cstddef>
#include <memory>

#include "policy/cache_method.h"
#include "policy/token_rows.h"

namespace kvs {

struct SnapkvOptions {
  std::size_t cache_size = 0;  // tokens of the prefix that stay; more than window
  std::size_t window = 64;     // at most the prefix
  std::size_t kernel = 5;      // odd
};

/// Of a prefix of P tokens the last `window` stay, and of the P − window before them, in each KV head, those
/// cache_size − window (the first of equal ones) with the most attention from the window's queries: softmax weights
/// over all that a query sees, summed over the window and the query heads that read the KV head, after average pooling
/// over `kernel` neighbours (zeros beyond both ends count). What comes later is all kept. Keys stay at their positions.
/// The window's tokens attend one by one, the others at once.
/// Source: Li et al. (2024), SnapKV, arXiv:2404.14469, section 4. Deviation: heads of a group share one choice, because
/// they share the cache.
std::unique_ptr<LayerCache> make_snapkv_cache(const SnapkvOptions& options, const StateStore& store = {});
extern const CacheMethod kSnapkvMethod;

}  // namespace kvs
