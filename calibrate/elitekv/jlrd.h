// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "kernels/calibration_ops.h"

namespace kvs::inline calibrate {

/// Where the singular values go: to the up factor (default), to the down factor, or to both as square roots.
enum class SingularSplit { kUp, kDown, kSqrt };

/// M ≈ up · down.
struct LowRankFactors {
  std::size_t rows = 0, columns = 0, rank = 0;
  std::vector<float> up;         // [rows, rank]
  std::vector<float> down;       // [rank, columns]
  std::vector<double> singular;  // all singular values of the decomposed matrix (M, or M·L if whitened), descending
};

/// Returns the rows of W_k that are not rotated, in double: for each KV head its non-elite channels, ascending. wk:
/// [kv_heads · head_dim, d_model]; elite: [kv_head][pick] chunks; chunk c = channels c and c + rotary_dim/2.
std::vector<double> unrotated_rows(std::span<const float> wk, std::span<const std::vector<std::size_t>> elite,
                                   std::size_t head_dim, std::size_t rotary_dim, std::size_t d_model);

/// Weights of the errors of M ≈ up · down: ‖D (M − up·down) L‖² is minimised.
struct Weighting {
  std::span<const double> inputs;  // L [columns, columns], lower: a Cholesky factor of E[xxᵀ]; empty: the identity
  /// Lower Cholesky factors B [rows, rows] of the costs of errors in consecutive rows of M, for all rows or none; D is
  /// block diagonal with blocks Bᵀ.
  std::vector<std::vector<double>> outputs;
};

/// Returns the best approximation of `matrix` [rows, columns] with the given rank (Eckart and Young 1936), in float64:
/// D·M·L = U S Vᵀ, up = D⁻¹ U S, down = Vᵀ L⁻¹, with S placed by `split`. With only `inputs`, E‖(M − up·down) x‖² is
/// minimal (the whitening of SVD-LLM).
/// Source: EliteKV, J-LRD (one matrix of the unrotated rows of W_k and all of W_v); the weighting is this project's.
LowRankFactors factorise(CalibrationOps& ops, std::span<const double> matrix, std::size_t columns, std::size_t rank,
                         SingularSplit split, const Weighting& weighting);

/// Returns S-LRD's ranks {rank of k, rank of v}: the `budget` largest values of both lists, at least one of each.
std::pair<std::size_t, std::size_t> shared_ranks(std::span<const double> singular_k, std::span<const double> singular_v,
                                                 std::size_t budget);

/// Returns the largest d_ckv whose factors have no more parameters than W_k's unrotated rows and W_v: ⌊d_model · G(2d −
/// 2r) / (d_model + G(2d − 2r))⌋.
std::size_t no_extra_parameters_rank(std::size_t d_model, std::size_t kv_heads, std::size_t head_dim,
                                     std::size_t r) noexcept;

}  // namespace kvs::inline calibrate
