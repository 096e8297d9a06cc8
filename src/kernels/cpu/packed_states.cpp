// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/packed_states.h"

#include <algorithm>
#include <cstring>

namespace kvs::cpu {
namespace {

std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Returns `rows` [count, head_dim], or a copy in `spare` padded with zeros to a whole chunk.
const float* extended(const float* rows, std::size_t count, std::size_t head_dim, float* spare) {
  if (count == StatesLayout::kChunk) return rows;
  std::copy_n(rows, count * head_dim, spare);
  std::fill(spare + count * head_dim, spare + StatesLayout::kChunk * head_dim, 0.0F);
  return spare;
}

}  // namespace

StatesLayout::StatesLayout(ProductEngine& engine, std::size_t head_dim)
    : engine_(&engine), head_dim_(head_dim), keys_(engine.layout(kChunk, head_dim)) {
  keys_bytes_ = whole_lines(keys_->bytes());
  for (std::size_t channel = 0; channel < head_dim; channel += kSlice) {
    values_.push_back(engine.layout(std::min(kSlice, head_dim - channel), kChunk));
    slice_bytes_ = std::max(slice_bytes_, whole_lines(values_.back()->bytes()));
  }
  chunk_bytes_ = keys_bytes_ + values_.size() * slice_bytes_;
}

void StatesLayout::pack(const float* k, const float* v, std::size_t count, float* spare, std::byte* chunk) const {
  const std::size_t packed_bytes = 2 * kChunk * head_dim_ * item_size(engine_->type());
  if (packed_bytes != chunk_bytes_) std::memset(chunk, 0, chunk_bytes_);  // padding must be zero
  engine_->pack(*keys_, chunk, 0, kChunk, extended(k, count, head_dim_, spare), head_dim_, 1);
  const float* rows = extended(v, count, head_dim_, spare);
  for (std::size_t slice = 0; slice < slices(); ++slice) {
    engine_->pack(*values_[slice], chunk + keys_bytes_ + slice * slice_bytes_, 0, slice_channels(slice),
                  rows + slice * kSlice, 1, head_dim_);
  }
}

}  // namespace kvs::cpu
