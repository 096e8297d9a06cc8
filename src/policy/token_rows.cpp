#include "policy/token_rows.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace kvs {
namespace {

using Rows = BackendView<float, 4>;
using ConstRows = BackendView<const float, 4>;

constexpr std::size_t kLeastCapacity = 64;

/// Rows [from, from + count) of every head of `source` to rows [to, …) of `target`, which is other memory.
void copy_rows(Backend& backend, const ConstRows& source, std::size_t from, std::size_t count, const Rows& target,
               std::size_t to) {
  const std::size_t heads = source.extent(1), head_dim = source.extent(3);
  for (std::size_t head = 0; head < heads; ++head)
    backend.copy(target.data() + (head * target.extent(2) + to) * head_dim,
                 source.data() + (head * source.extent(2) + from) * head_dim, count * head_dim * sizeof(float));
}

}  // namespace

CacheBytes RowBuffer::bytes() const noexcept {
  constexpr std::size_t kStoredValue = 2;
  const std::size_t capacity = view().extent(2), values = capacity == 0 ? 0 : view().size() / capacity;
  return {.stored = count_ * values * kStoredValue,
          .used = count_ * values * sizeof(float),
          .spare = (capacity - count_) * values * sizeof(float)};
}

void RowBuffer::reserve(Backend& backend, std::size_t heads, std::size_t channels, std::size_t rows) {
  const auto& shape = view().shape();
  if (count_ > 0 && (shape[1] != heads || shape[3] != channels))
    throw Error(ErrorCode::kInternal, "cache", "states of another shape than those before");
  if (!view().empty() && rows <= shape[2]) return;
  BackendTensor<float, 4> larger(backend, {1, heads, std::max(kLeastCapacity, std::bit_ceil(rows)), channels});
  if (count_ > 0) copy_rows(backend, view(), 0, count_, larger.view(), 0);
  rows_ = std::move(larger);
}

void RowBuffer::append(Backend& backend, ConstRows rows, std::size_t first, std::size_t count) {
  if (rows.extent(0) != 1 || first + count > rows.extent(2))
    throw Error(ErrorCode::kInternal, "cache", "expected the states of one sequence");
  reserve(backend, rows.extent(1), rows.extent(3), count_ + count);
  copy_rows(backend, rows, first, count, view(), count_);
  count_ += count;
}

RowBuffer::Part RowBuffer::part_of(Backend& backend, ConstRows rows, std::size_t first, std::size_t count) {
  Part part(backend, {1, rows.extent(1), count, rows.extent(3)});
  copy_rows(backend, rows, first, count, part.view(), 0);
  return part;
}

void RowBuffer::put(Backend& backend, std::size_t to, ConstRows rows, std::size_t first, std::size_t count) {
  if (to + count > count_) throw Error(ErrorCode::kInternal, "cache", "rows beyond the last");
  copy_rows(backend, rows, first, count, view(), to);
}

void RowBuffer::keep(Backend& backend, std::size_t first, std::size_t count,
                     const std::vector<std::vector<std::size_t>>& kept) {
  const std::size_t capacity = view().extent(2), channels = view().extent(3);
  for (std::size_t head = 0; head < kept.size(); ++head) {
    float* const rows = view().data() + (head * capacity + first) * channels;
    // Ascending, so that no row is overwritten before it was read.
    for (std::size_t n = 0; n < kept[head].size(); ++n)
      if (kept[head][n] != n)
        backend.copy(rows + n * channels, rows + kept[head][n] * channels, channels * sizeof(float));
  }
  const std::size_t after = count_ - first - count, left = kept.front().size();
  if (after > 0) put(backend, first + left, copy(backend, first + count, after).view(), 0, after);
  count_ = first + left + after;
}

void RowBuffer::drop_front(Backend& backend, std::size_t count) {
  put(backend, 0, copy(backend, count, count_ - count).view(), 0, count_ - count);
  count_ -= count;
}

}  // namespace kvs
