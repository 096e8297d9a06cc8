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

CacheBytes TokenRows::bytes() const noexcept {
  constexpr std::size_t kStoredValue = 2;
  const std::size_t capacity = k_.view().extent(2), values = capacity == 0 ? 0 : k_.view().size() / capacity;
  return {.stored = 2 * count_ * values * kStoredValue,
          .used = 2 * count_ * values * sizeof(float),
          .spare = 2 * (capacity - count_) * values * sizeof(float)};
}

void TokenRows::reserve(Backend& backend, std::size_t heads, std::size_t head_dim, std::size_t rows) {
  const auto& shape = k_.view().shape();
  if (count_ > 0 && (shape[1] != heads || shape[3] != head_dim))
    throw Error(ErrorCode::kInternal, "cache", "states of another shape than those before");
  if (!k_.view().empty() && rows <= shape[2]) return;
  const std::size_t capacity = std::max(kLeastCapacity, std::bit_ceil(rows));
  for (BackendTensor<float, 4>* states : {&k_, &v_}) {
    BackendTensor<float, 4> larger(backend, {1, heads, capacity, head_dim});
    if (count_ > 0) copy_rows(backend, states->view(), 0, count_, larger.view(), 0);
    *states = std::move(larger);
  }
}

void TokenRows::append(Backend& backend, ConstRows k, ConstRows v, std::size_t first, std::size_t count) {
  if (k.extent(0) != 1 || k.shape() != v.shape() || first + count > k.extent(2))
    throw Error(ErrorCode::kInternal, "cache", "expected keys and values of one sequence");
  reserve(backend, k.extent(1), k.extent(3), count_ + count);
  copy_rows(backend, k, first, count, k_.view(), count_);
  copy_rows(backend, v, first, count, v_.view(), count_);
  count_ += count;
}

TokenRows::Part TokenRows::copy(Backend& backend, std::size_t first, std::size_t count) const {
  const std::array<std::size_t, 4> shape{1, k_.view().extent(1), count, k_.view().extent(3)};
  Part part{BackendTensor<float, 4>(backend, shape), BackendTensor<float, 4>(backend, shape)};
  copy_rows(backend, k_.view(), first, count, part.k.view(), 0);
  copy_rows(backend, v_.view(), first, count, part.v.view(), 0);
  return part;
}

void TokenRows::put(Backend& backend, std::size_t first, const Part& part) {
  const std::size_t count = part.k.view().extent(2);
  if (first + count > count_) throw Error(ErrorCode::kInternal, "cache", "rows beyond the last");
  copy_rows(backend, part.k.view(), 0, count, k_.view(), first);
  copy_rows(backend, part.v.view(), 0, count, v_.view(), first);
}

void TokenRows::keep(Backend& backend, std::size_t first, std::size_t count,
                     const std::vector<std::vector<std::size_t>>& kept) {
  const std::size_t capacity = k_.view().extent(2), head_dim = k_.view().extent(3), row = head_dim * sizeof(float);
  for (std::size_t head = 0; head < kept.size(); ++head)
    for (float* states : {k_.view().data(), v_.view().data()}) {
      float* const rows = states + (head * capacity + first) * head_dim;
      // Ascending, so that no row is overwritten before it was read.
      for (std::size_t n = 0; n < kept[head].size(); ++n)
        if (kept[head][n] != n) backend.copy(rows + n * head_dim, rows + kept[head][n] * head_dim, row);
    }
  const std::size_t after = count_ - first - count, left = kept.front().size();
  if (after > 0) {
    const Part tail = copy(backend, first + count, after);
    put(backend, first + left, tail);
  }
  count_ = first + left + after;
}

void TokenRows::drop_front(Backend& backend, std::size_t count) {
  const Part tail = copy(backend, count, count_ - count);
  put(backend, 0, tail);
  count_ -= count;
}

}  // namespace kvs
