// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "caches/layer_cache.h"

namespace kvs::inline caches {

/// The properties of a model's layer that its cache needs.
struct LayerShape {
  std::size_t kv_heads = 0, head_dim = 0;    // 0: the layer has no attention
  std::size_t window = 0;                    // positions that a token reads at most; 0: all
  bool one_row = false;                      // keys and values come from one row (AttentionConfig)
  std::optional<std::size_t> kv_layer = {};  // the earlier layer whose keys and values it reads
  bool latent = false;                       // latent attention: a key's row is also the value's (one_row is set)

  /// Returns true if the layer has keys and values of its own.
  bool has_cache() const noexcept { return kv_heads > 0 && !kv_layer; }
  /// Values of the full cache per token.
  std::size_t values() const noexcept { return has_cache() ? (one_row ? 1 : 2) * kv_heads * head_dim : 0; }
  /// Returns the number of tokens, of a text of `tokens`, that the layer reads at most.
  std::size_t tokens_read(std::size_t tokens) const noexcept { return window == 0 ? tokens : std::min(tokens, window); }
  auto operator<=>(const LayerShape&) const = default;
};

/// The properties of a model that caches need.
struct CacheShape {
  std::vector<LayerShape> layers;  // [layer]
  /// The first channels of a head that ggml stores, in this family's W_k and so in its keys, with the two channels of a
  /// RoPE chunk adjacent; 0: none.
  std::size_t adjacent_pairs = 0;
};

/// Creates the caches of a model's layers. A layer that reads another layer's keys and values has a cache that is made
/// like that layer's. It sees the same keys and values and so keeps the same rows. Its bytes are not stored again.
/// @param make  creates the cache of a layer with keys and values of its own
Cache make_layers(const CacheShape& shape, const std::function<std::unique_ptr<LayerCache>(std::size_t layer)>& make,
                  const Prefix& prefix = {});

}  // namespace kvs::inline caches
