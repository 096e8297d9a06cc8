#pragma once

#include <cstddef>

#include "kernels/backend.h"

namespace kvs {

/// δ_c(i,j) = a_c(i) · b_c(j) with a_c = [q rotated ; −q] and b_c = [k rotated ; k]: two channels each.
constexpr std::size_t kComponents = 4;

/// Tells the query's vector a from the key's vector b.
enum class RopeSide { kQuery, kKey };

/// The operands of CalibrationOps' sums over pairs of tokens, checked once; in the memory of the backend.
struct RopeOperands {
  /// @throws Error kInternal if the shapes do not fit each other.
  RopeOperands(BackendView<const float, 3> query, BackendView<const float, 3> key, const RopeTable& table,
               std::size_t first_position);

  const float *q, *k;                        // [head, token, head_dim]
  const float *cosine, *sine;                // [token, half]
  float factor;                              // of the table: chunks that are not rotated keep it
  std::size_t query_heads, kv_heads, group;  // group = query_heads / kv_heads
  std::size_t tokens, head_dim, half;        // half: chunks, 2 · half ≤ head_dim
};

}  // namespace kvs
