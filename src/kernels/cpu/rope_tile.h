// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/cpu/simd/loops.h"
#include "kernels/rope_operands.h"

namespace kvs::cpu {

/// kDoubles doubles, aligned for vectorised loops.
struct alignas(kDoubles * sizeof(double)) Lane {
  double values[kDoubles];
};

/// Writes the four components of chunks [first_chunk, half) of one token. Component m of chunk c goes to out[m ·
/// component_stride + c · chunk_stride]. Rotates in double, with the f32 table.
/// @param head  query head or KV head, depending on `side`
inline void rope_components(const RopeOperands& in, RopeSide side, std::size_t head, std::size_t token,
                            std::size_t first_chunk, double* out, std::size_t component_stride,
                            std::size_t chunk_stride) {
  const float* const state = (side == RopeSide::kQuery ? in.q : in.k) + (head * in.tokens + token) * in.head_dim;
  const float *const cosine = in.cosine + token * in.half, *const sine = in.sine + token * in.half;
  // Unrotated chunks keep the table's factor, so that scores keep their temperature.
  const double scale = side == RopeSide::kQuery ? -in.factor : in.factor;
  for (std::size_t chunk = first_chunk; chunk < in.half; ++chunk) {
    const double low = state[chunk], high = state[chunk + in.half], cos = cosine[chunk], sin = sine[chunk];
    double* at = out + chunk * chunk_stride;
    at[0] = low * cos - high * sin;
    at[component_stride] = high * cos + low * sin;
    at[2 * component_stride] = scale * low;
    at[3 * component_stride] = scale * high;
  }
}

}  // namespace kvs::cpu
