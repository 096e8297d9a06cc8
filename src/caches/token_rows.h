// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "caches/kv_types.h"
#include "caches/layer_cache.h"

namespace kvs::inline caches {

/// Stores one row per token and head, in a buffer that doubles when it is full.
class RowBuffer {
 public:
  using Part = BackendTensor<float, 4>;  // decoded rows, packed: [1, head, count, value]

  explicit RowBuffer(RowType types = {}) : type_(std::move(types)) { held_.format = type_.format; }

  std::size_t count() const noexcept { return held_.count; }
  /// [1, head, capacity, value]; count() rows of each head are in use.
  const StoredRows& held() const noexcept { return held_; }
  const RowType& type() const noexcept { return type_; }
  CacheBytes bytes() const noexcept;

  /// Appends rows [first, first + count) of `rows` [1, head, token, value]. Amortised O(count).
  void append(Backend& backend, BackendView<const float, 4> rows, std::size_t first, std::size_t count);
  /// Appends the rows of the new tokens of one sequence, [1, head, token, value], and writes their decoded values back
  /// to `rows`. @return the rows stored before
  StoredRows add(Backend& backend, const BackendView<float, 4>& rows);
  /// Returns a copy of rows [first, first + count) of `rows`; copy() does so for the stored rows.
  static Part part_of(Backend& backend, BackendView<const float, 4> rows, std::size_t first, std::size_t count);
  Part copy(Backend& backend, std::size_t first, std::size_t count) const;
  /// Overwrites existing rows from `to` on with rows [first, first + count) of `rows`.
  void put(Backend& backend, std::size_t to, BackendView<const float, 4> rows, std::size_t first, std::size_t count);
  /// Keeps those of rows [first, first + count) in each head that `kept[head]` names (from 0, ascending, equally many
  /// in every head), and moves the following rows up. Coded rows are not coded again.
  void keep(Backend& backend, std::size_t first, std::size_t count, const std::vector<std::vector<std::size_t>>& kept);
  /// Drops row rows[head] of each head; the last row takes its place. O(heads).
  void drop_each(Backend& backend, const std::vector<std::size_t>& rows);
  /// Drops the rows from `count` on.
  void truncate(std::size_t count) noexcept { held_.count = count; }
  /// Drops the first `count` rows.
  void drop_front(Backend& backend, std::size_t count);

 private:
  void reserve(Backend& backend, std::size_t heads, std::size_t values, std::size_t rows);
  /// Moves rows [from, from + count) of a head up to `to` < `from`.
  void move_up(Backend& backend, std::size_t head, std::size_t from, std::size_t to, std::size_t count);

  RowType type_;
  BackendTensor<std::byte, 1> memory_;
  BackendTensor<float, 1> scales_;
  StoredRows held_;
};

/// Keys and values of one sequence: two row buffers, or in latent attention one. There the row of a key is also that of
/// the value: its rotated channels do not reach the heads' values.
class TokenRows {
 public:
  struct Part {
    RowBuffer::Part k, v;
  };

  explicit TokenRows(const KvTypes& types = {})
      : k_(types.k), v_(types.v), one_row_(types.one_row), latent_(types.latent) {}

  std::size_t count() const noexcept { return k_.count(); }
  /// Returns true if rows are stored in f32, not coded.
  bool is_plain() const noexcept { return held().is_plain(); }
  PastKv held() const noexcept { return {k_.held(), values().held()}; }
  KvTypes types() const { return {k_.type(), v_.type(), one_row_, latent_}; }
  CacheBytes bytes() const noexcept {
    CacheBytes sum = k_.bytes();
    if (latent_) return sum;
    if (one_row_ && is_plain()) sum.stored = 0;  // v's rows are those of k
    return sum += v_.bytes();
  }

  /// Appends the new tokens of one sequence and writes their decoded values back to `states`: engines first store and
  /// then read everything back, including a token's own state. With several members nothing is added.
  /// @return the rows stored before
  PastKv add(const LayerStates& states);

  void append(Backend& backend, BackendView<const float, 4> k, BackendView<const float, 4> v, std::size_t first,
              std::size_t count) {
    k_.append(backend, k, first, count);
    if (!latent_) v_.append(backend, v, first, count);
  }
  Part copy(Backend& backend, std::size_t first, std::size_t count) const {
    return {k_.copy(backend, first, count), values().copy(backend, first, count)};
  }
  void put(Backend& backend, std::size_t to, BackendView<const float, 4> k, BackendView<const float, 4> v,
           std::size_t first, std::size_t count) {
    k_.put(backend, to, k, first, count);
    if (!latent_) v_.put(backend, to, v, first, count);
  }
  void put(Backend& backend, std::size_t to, const Part& part) {
    put(backend, to, part.k.view(), part.v.view(), 0, part.k.view().extent(2));
  }
  void put_keys(Backend& backend, std::size_t to, const RowBuffer::Part& k) {
    k_.put(backend, to, k.view(), 0, k.view().extent(2));
  }
  void keep(Backend& backend, std::size_t first, std::size_t count, const std::vector<std::vector<std::size_t>>& kept) {
    change([&](RowBuffer& rows) { rows.keep(backend, first, count, kept); });
  }
  void drop_each(Backend& backend, const std::vector<std::size_t>& rows) {
    change([&](RowBuffer& buffer) { buffer.drop_each(backend, rows); });
  }
  void truncate(std::size_t count) noexcept {
    change([&](RowBuffer& rows) { rows.truncate(count); });
  }
  void drop_front(Backend& backend, std::size_t count) {
    change([&](RowBuffer& rows) { rows.drop_front(backend, count); });
  }

 private:
  const RowBuffer& values() const noexcept { return latent_ ? k_ : v_; }
  template <class Change>
  void change(Change change_rows) {
    change_rows(k_);
    if (!latent_) change_rows(v_);
  }

  RowBuffer k_, v_;  // v_: empty in latent attention
  bool one_row_, latent_;
};

}  // namespace kvs::inline caches
