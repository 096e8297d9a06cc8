#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"

namespace kvs::cpu {

/// Eight doubles that the compiler keeps in whatever vector registers the processor has.
constexpr std::size_t kLanes = 8;
/// GCC and Clang let a double alias the elements of such a vector, so arrays of lanes are also read as doubles.
using Lane = double __attribute__((vector_size(kLanes * sizeof(double))));
using LaneBits = std::int64_t __attribute__((vector_size(kLanes * sizeof(double))));

/// δ_c(i,j) = a_c(i) · b_c(j) with a_c = [q rotated ; −q] and b_c = [k rotated ; k]: two channels each.
constexpr std::size_t kComponents = 4;

/// Tells the query's vector a from the key's vector b.
enum class RopeSide { kQuery, kKey };

/// Writes the four components of chunks [first_chunk, half) of one token, component m of chunk c at
/// out[m · component_stride + c · chunk_stride]. Rotation in double, from the f32 table.
/// @param state  [2 · half, …] before RoPE;  cosine, sine  [half] of the token's position
/// @param factor  of the table: chunks that are not rotated keep it, so that scores keep their temperature
inline void rope_components(const float* state, const float* cosine, const float* sine, float factor, std::size_t half,
                            std::size_t first_chunk, RopeSide side, double* out, std::size_t component_stride,
                            std::size_t chunk_stride) {
  const double sign = side == RopeSide::kQuery ? -factor : factor;
  for (std::size_t chunk = first_chunk; chunk < half; ++chunk) {
    const double low = state[chunk], high = state[chunk + half], cos = cosine[chunk], sin = sine[chunk];
    double* at = out + chunk * chunk_stride;
    at[0] = low * cos - high * sin;
    at[component_stride] = high * cos + low * sin;
    at[2 * component_stride] = sign * low;
    at[3 * component_stride] = sign * high;
  }
}

/// The operands of both RoPE sums, checked once. All of it is host memory: the CPU backend's.
struct RopeOperands {
  RopeOperands(BackendView<const float, 3> query, BackendView<const float, 3> key, const RopeTable& table,
               std::size_t position);

  const float* query(std::size_t head, std::size_t token) const { return q + (head * tokens + token) * head_dim; }
  const float* key(std::size_t head, std::size_t token) const { return k + (head * tokens + token) * head_dim; }
  const float* cosine(std::size_t token) const { return cos + token * half; }
  const float* sine(std::size_t token) const { return sin + token * half; }

  const float *q, *k, *cos, *sin;
  float factor;
  std::size_t query_heads, kv_heads, group, tokens, head_dim, half;  // half: chunks, 2 · half ≤ head_dim
};

}  // namespace kvs::cpu
