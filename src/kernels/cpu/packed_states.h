// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/cpu/products.h"

namespace kvs::cpu {

/// The packed layout of a run of up to kChunk keys and values of one head. It serves the two products of attention:
/// scores [row, key] = q · Kᵀ and mix [row, channel] = p · V. Values are packed in slices of up to kSlice channels,
/// because only then are the first keys of packed values laid out as a separate matrix (which the diagonal needs).
class StatesLayout {
 public:
  static constexpr std::size_t kChunk = 256, kSlice = 64, kWidthStep = 64;

  StatesLayout(ProductEngine& engine, std::size_t head_dim);

  std::size_t head_dim() const noexcept { return head_dim_; }
  std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }
  std::size_t slices() const noexcept { return values_.size(); }
  std::size_t slice_channels(std::size_t slice) const noexcept { return values_[slice]->n(); }
  const PackedLayout& keys() const noexcept { return *keys_; }
  const PackedLayout& values(std::size_t slice) const noexcept { return *values_[slice]; }
  const void* values_at(const std::byte* chunk, std::size_t slice) const noexcept {
    return chunk + keys_bytes_ + slice * slice_bytes_;
  }

  /// Packs k and v [count, head_dim] into a chunk. Keys and values from `count` on are zero.
  /// @param spare  memory for kChunk · head_dim values
  void pack(const float* k, const float* v, std::size_t count, float* spare, std::byte* chunk) const;

 private:
  const ProductEngine* engine_;
  std::size_t head_dim_, keys_bytes_, slice_bytes_ = 0, chunk_bytes_ = 0;
  std::shared_ptr<const PackedLayout> keys_;
  std::vector<std::shared_ptr<const PackedLayout>> values_;
};

}  // namespace kvs::cpu
