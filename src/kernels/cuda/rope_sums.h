#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/context.h"

namespace kvs::cuda {

/// δ_c(i,j) = a_c(i) · b_c(j) with a_c = [q rotated ; −q] and b_c = [k rotated ; k]: two channels each.
constexpr std::size_t kComponents = 4;

/// The operands of both RoPE sums, checked once; device memory.
struct RopeOperands {
  /// @throws Error kInternal if the shapes do not fit each other.
  RopeOperands(BackendView<const float, 3> query, BackendView<const float, 3> key, const RopeTable& table,
               std::size_t position);

  const float* query(std::size_t head) const { return q + head * tokens * head_dim; }
  const float* key(std::size_t head) const { return k + head * tokens * head_dim; }
  std::size_t components() const { return kComponents * half; }

  const float *q, *k, *cosine, *sine;  // cosine, sine: of token 0
  float factor;
  std::size_t query_heads, kv_heads, group, tokens, head_dim, half;  // half: chunks, 2 · half ≤ head_dim
};

/// Writes [count, component, chunk] of tokens [first, first + count) of one head, zeros for tokens past the end.
/// Rotation in double, from the f32 table. @param state  [token, head_dim];  @param sign  −1 for queries, 1 for keys
void fill_components(const Context& context, const RopeOperands& in, const float* state, double sign, std::size_t first,
                     std::size_t count, double* out);

/// See CalibrationOps::accumulate_rope_gram.
void accumulate_rope_gram(const Context& context, const RopeOperands& in, TensorView<double, 3> gram);
/// See CalibrationOps::accumulate_rope_distance.
void accumulate_rope_distance(const Context& context, const RopeOperands& in, TensorView<const std::uint8_t, 2> rotated,
                              TensorView<double, 2> errors);

}  // namespace kvs::cuda
