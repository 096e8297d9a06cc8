#pragma once

#include <cstddef>
#include <memory>

#include "kernels/backend.h"

namespace kvs {

/// What attention reads besides the new tokens' own keys and values: [member or 1, kv_head, past, head_dim], rotated.
struct Past {
  BackendView<const float, 4> k, v;
};

/// One way to keep a KV cache between groups of tokens. The decoder asks it at each layer for the past, then hands over
/// the layer's new states. One method = one file in policy/.
class CachePolicy {
 public:
  virtual ~CachePolicy() = default;

  /// The past that the next group of tokens attends to in `layer`; empty views if there is none.
  virtual Past past(std::size_t layer) = 0;
  /// New states of `layer`, after RoPE. k, v: [member, kv_head, token, head_dim]; the policy copies what it keeps.
  virtual void append(std::size_t layer, BackendView<const float, 4> k, BackendView<const float, 4> v) = 0;
  /// Tokens that the policy has been given so far in layer 0 (the position of the next token).
  virtual std::size_t tokens_seen() const noexcept = 0;
  /// Reals that the cache holds at present, over all layers.
  virtual std::size_t stored_reals() const noexcept = 0;
};

/// Keeps every key and value (policy/full.cpp).
std::unique_ptr<CachePolicy> make_full_cache(Backend& backend, std::size_t layers);

}  // namespace kvs
