// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/backend.h"
#include "kernels/cuda/check.h"

namespace kvs::cuda {

/// Returns a channel of a rotated chunk. fmaf fixes the rounding of the sum, so all kernels give the same bits.
__device__ inline float rotated(float own, float other, float cosine, float signed_sine) {
  return fmaf(own, cosine, other * signed_sine);
}

/// Returns the number of chunks of a table that must fit heads of head_dim and cover `positions` positions.
inline std::size_t checked_chunks(const RopeTable& table, std::size_t head_dim, std::size_t positions) {
  const std::size_t half = table.cosine.extent(1);
  require(table.cosine.shape() == table.sine.shape() && 2 * half <= head_dim, "rope",
          "a table of at most head_dim / 2 frequencies");
  require(table.cosine.extent(0) >= positions, "rope", "a table that reaches the last position");
  return half;
}

}  // namespace kvs::cuda
