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

  std::size_t components() const { return kComponents * half; }

  const float *q, *k, *cosine, *sine;  // cosine, sine: of token 0
  float factor;
  std::size_t query_heads, kv_heads, group, tokens, head_dim, half;  // half: chunks, 2 · half ≤ head_dim
};

/// Tells the query's vector a from the key's vector b.
enum class RopeSide { kQuery, kKey };

/// Writes the components of one head's tokens: [token, component, chunk].
void fill_components(const Context& context, const RopeOperands& in, RopeSide side, std::size_t head, double* out);

/// See CalibrationOps::accumulate_rope_gram.
void accumulate_rope_gram(const Context& context, const RopeOperands& in, TensorView<double, 3> gram);
/// See CalibrationOps::accumulate_rope_distance.
void accumulate_rope_distance(const Context& context, const RopeOperands& in, TensorView<const std::uint8_t, 2> rotated,
                              TensorView<double, 2> errors);

}  // namespace kvs::cuda
