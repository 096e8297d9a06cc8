#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "policy/layer_cache.h"

namespace kvs {

/// What a cache keeps of each token in each head, a row a token, in a buffer that doubles when it is full.
class RowBuffer {
 public:
  using Part = BackendTensor<float, 4>;  // rows of their own, packed: [1, head, count, channel]

  std::size_t count() const noexcept { return count_; }
  /// [1, head, capacity, channel], of which count() rows of each head are in use.
  const BackendView<float, 4>& view() const noexcept { return rows_.view(); }
  CacheBytes bytes() const noexcept;

  /// Adds rows [first, first + count) of `rows` [1, head, token, channel]. Amortised O(count).
  void append(Backend& backend, BackendView<const float, 4> rows, std::size_t first, std::size_t count);
  /// A copy of rows [first, first + count) of some rows, or of these.
  static Part part_of(Backend& backend, BackendView<const float, 4> rows, std::size_t first, std::size_t count);
  Part copy(Backend& backend, std::size_t first, std::size_t count) const {
    return part_of(backend, view(), first, count);
  }
  /// Overwrites rows from `to` on, which must be there, with rows [first, first + count) of `rows`.
  void put(Backend& backend, std::size_t to, BackendView<const float, 4> rows, std::size_t first, std::size_t count);
  /// Keeps of rows [first, first + count), in each head, those that `kept[head]` names (from 0, ascending, as many in
  /// every head) and moves what follows up to them.
  void keep(Backend& backend, std::size_t first, std::size_t count, const std::vector<std::vector<std::size_t>>& kept);
  /// Drops the rows from `count` on.
  void truncate(std::size_t count) noexcept { count_ = count; }
  /// Drops the first `count` rows.
  void drop_front(Backend& backend, std::size_t count);

 private:
  void reserve(Backend& backend, std::size_t heads, std::size_t channels, std::size_t rows);

  BackendTensor<float, 4> rows_;
  std::size_t count_ = 0;
};

/// Keys and values of one sequence: two buffers that do the same.
class TokenRows {
 public:
  struct Part {
    RowBuffer::Part k, v;
  };

  std::size_t count() const noexcept { return k_.count(); }
  KeyRows view() const noexcept { return {k_.view(), v_.view(), count()}; }
  CacheBytes bytes() const noexcept {
    CacheBytes sum = k_.bytes();
    return sum += v_.bytes();
  }

  void append(Backend& backend, BackendView<const float, 4> k, BackendView<const float, 4> v, std::size_t first,
              std::size_t count) {
    k_.append(backend, k, first, count);
    v_.append(backend, v, first, count);
  }
  void append(const LayerStates& states) { append(states.backend, states.k, states.v, 0, states.tokens()); }
  Part copy(Backend& backend, std::size_t first, std::size_t count) const {
    return {k_.copy(backend, first, count), v_.copy(backend, first, count)};
  }
  void put(Backend& backend, std::size_t to, BackendView<const float, 4> k, BackendView<const float, 4> v,
           std::size_t first, std::size_t count) {
    k_.put(backend, to, k, first, count);
    v_.put(backend, to, v, first, count);
  }
  void put(Backend& backend, std::size_t to, const Part& part) {
    put(backend, to, part.k.view(), part.v.view(), 0, part.k.view().extent(2));
  }
  void keep(Backend& backend, std::size_t first, std::size_t count, const std::vector<std::vector<std::size_t>>& kept) {
    k_.keep(backend, first, count, kept);
    v_.keep(backend, first, count, kept);
  }
  void truncate(std::size_t count) noexcept {
    k_.truncate(count);
    v_.truncate(count);
  }
  void drop_front(Backend& backend, std::size_t count) {
    k_.drop_front(backend, count);
    v_.drop_front(backend, count);
  }

 private:
  RowBuffer k_, v_;
};

}  // namespace kvs
