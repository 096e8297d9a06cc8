#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "policy/layer_cache.h"

namespace kvs {

/// Keys and values of one sequence, a row a token in each KV head, in buffers that double when they are full.
class TokenRows {
 public:
  /// Rows of their own, packed: [1, kv_head, count, head_dim].
  struct Part {
    BackendTensor<float, 4> k, v;
  };

  std::size_t count() const noexcept { return count_; }
  KeyRows view() const noexcept { return {k_.view(), v_.view(), count_}; }
  CacheBytes bytes() const noexcept;

  /// Adds rows [first, first + count) of k and v [1, kv_head, token, head_dim]. Amortised O(count).
  void append(Backend& backend, BackendView<const float, 4> k, BackendView<const float, 4> v, std::size_t first,
              std::size_t count);
  void append(const LayerStates& states) { append(states.backend, states.k, states.v, 0, states.tokens()); }
  /// A copy of rows [first, first + count).
  Part copy(Backend& backend, std::size_t first, std::size_t count) const;
  /// Overwrites rows from `first` on, which must be there.
  void put(Backend& backend, std::size_t first, const Part& part);
  /// Keeps of rows [first, first + count), in each KV head, those that `kept[head]` names (from 0, ascending, as many
  /// in every head) and moves what follows up to them.
  void keep(Backend& backend, std::size_t first, std::size_t count, const std::vector<std::vector<std::size_t>>& kept);
  /// Drops the rows from `count` on.
  void truncate(std::size_t count) noexcept { count_ = count; }
  /// Drops the first `count` rows.
  void drop_front(Backend& backend, std::size_t count);

 private:
  void reserve(Backend& backend, std::size_t heads, std::size_t head_dim, std::size_t rows);

  BackendTensor<float, 4> k_, v_;  // [1, kv_head, capacity, head_dim]
  std::size_t count_ = 0;
};

}  // namespace kvs
