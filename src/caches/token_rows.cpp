// SPDX-License-Identifier: Apache-2.0
#include "caches/token_rows.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace kvs::inline caches {
namespace {

using ConstRows = BackendView<const float, 4>;

constexpr std::size_t kMinCapacity = 64;

std::byte* writable(const StoredRows& held, std::size_t head, std::size_t row) {
  return const_cast<std::byte*>(held.row(0, head, row));
}

/// Copies rows [from, from + count) of every head of f32 rows to rows [to, …) of `target`, which must not overlap them.
void copy_rows(Backend& backend, const ConstRows& source, std::size_t from, std::size_t count, const StoredRows& target,
               std::size_t to) {
  const std::size_t heads = source.extent(1), values = source.extent(3);
  for (std::size_t head = 0; head < heads; ++head)
    backend.copy(writable(target, head, to), source.data() + (head * source.extent(2) + from) * values,
                 count * values * sizeof(float));
}

}  // namespace

CacheBytes RowBuffer::bytes() const noexcept {
  const std::size_t heads = held_.shape[1], used = heads * held_.bytes(held_.count);
  const std::size_t stored = heads * held_.count * held_.values() * CacheBytes::kStoredValue;
  return {.stored = type_.format.is_plain() ? stored : used, .used = used, .spare = memory_.bytes() - used};
}

void RowBuffer::reserve(Backend& backend, std::size_t heads, std::size_t values, std::size_t rows) {
  const auto& shape = held_.shape;
  if (count() > 0 && (shape[1] != heads || shape[3] != values))
    throw Error(ErrorCode::kInternal, "cache", "states of another shape than those before");
  if (!memory_.view().empty() && rows <= shape[2]) return;
  StoredRows larger;
  larger.shape = {1, heads, std::max(kMinCapacity, std::bit_ceil(rows)), values};
  larger.format = type_.format;
  larger.count = count();
  BackendTensor<std::byte, 1> memory(backend, {heads * larger.bytes(larger.shape[2])});
  larger.data = memory.view().data();
  for (std::size_t head = 0; head < heads && count() > 0; ++head)
    backend.copy(writable(larger, head, 0), held_.row(0, head, 0), held_.bytes(count()));
  if (!type_.scales.empty() && scales_.view().empty()) {
    std::vector<float> each = type_.scales;
    if (type_.format.is_scaled()) each.resize(heads, each.front());
    scales_ = BackendTensor<float, 1>(backend, {each.size()});
    backend.upload(scales_.view().data(), each.data(), scales_.bytes());
  }
  larger.scales = scales_.view();
  memory_ = std::move(memory);
  held_ = larger;
}

void RowBuffer::append(Backend& backend, ConstRows rows, std::size_t first, std::size_t count) {
  if (rows.extent(0) != 1 || first + count > rows.extent(2))
    throw Error(ErrorCode::kInternal, "cache", "expected the states of one sequence");
  const std::size_t before = held_.count;
  reserve(backend, rows.extent(1), rows.extent(3), before + count);
  held_.count += count;
  put(backend, before, rows, first, count);
}

StoredRows RowBuffer::add(Backend& backend, const BackendView<float, 4>& rows) {
  const std::size_t before = count();
  append(backend, rows, 0, rows.extent(2));
  if (!type_.format.is_plain()) backend.decode_rows(held_, before, rows);
  StoredRows earlier = held_;
  earlier.count = before;
  return earlier;
}

RowBuffer::Part RowBuffer::part_of(Backend& backend, ConstRows rows, std::size_t first, std::size_t count) {
  Part part(backend, {1, rows.extent(1), count, rows.extent(3)});
  copy_rows(backend, rows, first, count, {part.view(), count}, 0);
  return part;
}

RowBuffer::Part RowBuffer::copy(Backend& backend, std::size_t first, std::size_t count) const {
  Part part(backend, {1, held_.shape[1], count, held_.values()});
  backend.decode_rows(held_, first, part.view());
  return part;
}

void RowBuffer::put(Backend& backend, std::size_t to, ConstRows rows, std::size_t first, std::size_t count) {
  if (to + count > held_.count) throw Error(ErrorCode::kInternal, "cache", "rows beyond the last");
  if (type_.format.is_plain())
    copy_rows(backend, rows, first, count, held_, to);
  else
    backend.encode_rows(rows, first, count, held_, to);
}

void RowBuffer::move_up(Backend& backend, std::size_t head, std::size_t from, std::size_t to, std::size_t count) {
  // In pieces that do not overlap, from the front.
  for (std::size_t done = 0; done < count;) {
    const std::size_t piece = std::min(from - to, count - done);
    backend.copy(writable(held_, head, to + done), held_.row(0, head, from + done), held_.bytes(piece));
    done += piece;
  }
}

void RowBuffer::keep(Backend& backend, std::size_t first, std::size_t count,
                     const std::vector<std::vector<std::size_t>>& kept) {
  const std::size_t after = held_.count - first - count, left = kept.front().size();
  for (std::size_t head = 0; head < kept.size(); ++head) {
    // Ascending, so that no row is overwritten before it is read.
    for (std::size_t n = 0; n < left; ++n)
      if (kept[head][n] != n) move_up(backend, head, first + kept[head][n], first + n, 1);
    if (left < count) move_up(backend, head, first + count, first + left, after);
  }
  held_.count = first + left + after;
}

void RowBuffer::drop_each(Backend& backend, const std::vector<std::size_t>& rows) {
  --held_.count;
  for (std::size_t head = 0; head < rows.size(); ++head)
    if (rows[head] < held_.count) move_up(backend, head, held_.count, rows[head], 1);
}

void RowBuffer::drop_front(Backend& backend, std::size_t count) {
  for (std::size_t head = 0; head < held_.shape[1]; ++head) move_up(backend, head, count, 0, held_.count - count);
  held_.count -= count;
}

PastKv TokenRows::add(const LayerStates& states) {
  Backend& backend = states.backend;
  if (states.members() > 1) {
    if (!is_plain()) throw Error(ErrorCode::kInternal, "cache", "coded rows of several members");
    return held();
  }
  const StoredRows keys = k_.add(backend, states.k);
  if (!latent_) return {keys, v_.add(backend, states.v)};
  backend.copy(states.v.data(), states.k.data(), states.k.size() * sizeof(float));
  return {keys, keys};
}

}  // namespace kvs::inline caches
