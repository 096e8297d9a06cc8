// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/forward_ops.h"

namespace kvs::inline kernels {

/// δ_c(i,j) = a_c(i) · b_c(j) with a_c = [q rotated ; −q] and b_c = [k rotated ; k], two channels each.
constexpr std::size_t kComponents = 4;

/// Selects the query's vector a or the key's vector b.
enum class RopeSide { kQuery, kKey };

/// The operands of CalibrationOps' sums over pairs of tokens, in backend memory. The constructor checks them.
struct RopeOperands {
  /// @throws Error kInternal if the shapes do not fit each other.
  RopeOperands(BackendView<const float, 3> query, BackendView<const float, 3> key, const RopeTable& table,
               std::size_t first_position);

  const float *q, *k;                        // [head, token, head_dim]
  const float *cosine, *sine;                // [token, half]
  float factor;                              // attention factor of the table; unrotated chunks keep it
  std::size_t query_heads, kv_heads, group;  // group = query_heads / kv_heads
  std::size_t tokens, head_dim, half;        // half: number of chunks, 2 · half ≤ head_dim
};

}  // namespace kvs::inline kernels
