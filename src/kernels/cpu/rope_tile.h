#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/rope_operands.h"

namespace kvs::cpu {

/// Eight doubles that the compiler keeps in whatever vector registers the processor has.
constexpr std::size_t kLanes = 8;
/// GCC and Clang let a double alias the elements of such a vector, so arrays of lanes are also read as doubles.
using Lane = double __attribute__((vector_size(kLanes * sizeof(double))));
using LaneBits = std::int64_t __attribute__((vector_size(kLanes * sizeof(double))));

/// Writes the four components of chunks [first_chunk, half) of one token, component m of chunk c at
/// out[m · component_stride + c · chunk_stride]. Rotation in double, from the f32 table.
/// @param head  query head or KV head, as the side says
inline void rope_components(const RopeOperands& in, RopeSide side, std::size_t head, std::size_t token,
                            std::size_t first_chunk, double* out, std::size_t component_stride,
                            std::size_t chunk_stride) {
  const float* const state = (side == RopeSide::kQuery ? in.q : in.k) + (head * in.tokens + token) * in.head_dim;
  const float *const cosine = in.cosine + token * in.half, *const sine = in.sine + token * in.half;
  // Chunks that are not rotated keep the table's factor, so that scores keep their temperature.
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
