// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/cuda/rope_sums.h"

namespace kvs::cuda {

/// a_c(i) or b_c(j): the chunk's two channels, first rotated, then unrotated.
struct RopeComponents {
  double value[kComponents];
};

/// Returns the components of one chunk of one token. Rotates in double, with the f32 table.
/// @param state  [token, head_dim];  @param scale  factor of the unrotated half: the table's factor, negative for
///         queries
__device__ inline RopeComponents components_of(const RopeOperands& in, const float* state, double scale,
                                               std::size_t token, std::size_t chunk) {
  const float* const at = state + token * in.head_dim + chunk;
  const double low = at[0], high = at[in.half], cosine = in.cosine[token * in.half + chunk],
               sine = in.sine[token * in.half + chunk];
  return {low * cosine - high * sine, high * cosine + low * sine, scale * low, scale * high};
}

__device__ inline RopeComponents query_components(const RopeOperands& in, std::size_t head, std::size_t token,
                                                  std::size_t chunk) {
  return components_of(in, in.q + head * in.tokens * in.head_dim, -static_cast<double>(in.factor), token, chunk);
}
__device__ inline RopeComponents key_components(const RopeOperands& in, std::size_t kv_head, std::size_t token,
                                                std::size_t chunk) {
  return components_of(in, in.k + kv_head * in.tokens * in.head_dim, static_cast<double>(in.factor), token, chunk);
}

}  // namespace kvs::cuda
