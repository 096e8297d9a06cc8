#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "kernels/calibration_ops.h"

namespace kvs {

/// Where the singular values go: into the up factor (default), the down factor, or half into each (square roots).
enum class SingularSplit { kUp, kDown, kSqrt };

/// M ≈ up · down.
struct LowRankFactors {
  std::size_t rows = 0, columns = 0, rank = 0;
  std::vector<float> up;         // [rows, rank]
  std::vector<float> down;       // [rank, columns]
  std::vector<double> singular;  // all of what was decomposed (M, or M·L when whitened), descending
};

/// Rows of W_k that are not rotated: for each KV head its non-elite channels, ascending. In double.
/// wk: [kv_heads · head_dim, d_model]; elite: [kv_head][pick] chunks; chunk c = channels c and c + rotary_dim/2.
std::vector<double> unrotated_rows(std::span<const float> wk, std::span<const std::vector<std::size_t>> elite,
                                   std::size_t head_dim, std::size_t rotary_dim, std::size_t d_model);

/// How much errors of M ≈ up · down matter: the least of ‖D (M − up·down) L‖² is found.
struct Weighting {
  std::span<const double> inputs;  // L [columns, columns], lower: a Cholesky factor of E[xxᵀ]; empty: the identity
  /// Of consecutive rows of M, all of them or none: lower Cholesky factors B [rows, rows] of what an error in them
  /// costs; D is block diagonal, of Bᵀ.
  std::vector<std::vector<double>> outputs;
};

/// Best approximation of `matrix` [rows, columns] of the given rank (Eckart and Young 1936), in float64: D·M·L = U S
/// Vᵀ, up = D⁻¹ U S, down = Vᵀ L⁻¹, S where `split` says. With `inputs` alone E‖(M − up·down) x‖² is least (as SVD-LLM
/// whitens).
/// Source: EliteKV, J-LRD (one matrix of the unrotated rows of W_k and all of W_v); the weighting is ours.
LowRankFactors factorise(CalibrationOps& ops, std::span<const double> matrix, std::size_t columns, std::size_t rank,
                         SingularSplit split, const Weighting& weighting);

/// S-LRD's ranks: the `budget` largest of both lists, each matrix at least one. @return {rank of k, rank of v}.
std::pair<std::size_t, std::size_t> shared_ranks(std::span<const double> singular_k, std::span<const double> singular_v,
                                                 std::size_t budget);

/// The largest d_ckv whose factors hold no more parameters than W_k's unrotated rows and W_v:
/// ⌊d_model · G(2d − 2r) / (d_model + G(2d − 2r))⌋.
std::size_t no_extra_parameters_rank(std::size_t d_model, std::size_t kv_heads, std::size_t head_dim,
                                     std::size_t r) noexcept;

}  // namespace kvs
