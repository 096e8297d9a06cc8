// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace kvs::inline kernels {

/// Leading singular triplets of M ≈ left · diag(singular) · right.
struct SingularValues {
  std::vector<double> singular;  // all min(m, n) values, descending
  std::vector<double> left;      // [m, rank], row-major, orthonormal columns
  std::vector<double> right;     // [rank, n], row-major, orthonormal rows
};

/// Leading eigenvectors of a symmetric matrix.
struct Eigenvectors {
  std::vector<double> values;   // all n, descending
  std::vector<double> vectors;  // [rank, n], row-major, orthonormal rows, in the order of the values
};

/// Returns the number of leading eigenvectors that are wanted. Called once with all eigenvalues, descending.
using WantedVectors = std::function<std::size_t(std::span<const double> values)>;

enum class Triangular { kMultiply, kSolve };

/// RoPElite's Gram matrices of several layers. A device keeps them until all layers are added, because a copy to the
/// host after each layer would leave it idle. Cost is linear in tokens, by running sums over j (derived in
/// docs/elitekv.md). Source: EliteKV's RoPElite with a squared distance.
class RopeGrams {
 public:
  virtual ~RopeGrams() = default;

  /// gram[layer, h, c, c'] += Σ_{i ≥ j} δ_c(i,j) δ_c'(i,j), where δ_c is the rotated minus the unrotated contribution
  /// of chunk c to q_i·k_j (without 1/√d). q: [query_head, token, head_dim], k: [kv_head, token, head_dim], both before
  /// RoPE; token t is at position first_position + t of `table`. Channels outside all chunks are equal in both scores
  /// and leave no δ. The table's factor applies to both scores.
  virtual void add(std::size_t layer, BackendView<const float, 3> q, BackendView<const float, 3> k,
                   const RopeTable& table, std::size_t first_position) = 0;
  /// Completes `gram` with all additions. Call it once, after the last add(). Before that, gram may be incomplete.
  virtual void finish() = 0;
};

/// Float64 linear algebra and sums over tokens for the calibrators.
class CalibrationOps {
 public:
  virtual ~CalibrationOps() = default;

  /// Returns the SVD of `matrix` [m, n] with the leading `rank` vectors (0: values only). Up to min(m, n) = 1024 it
  /// uses divide and conquer on M. Above, it uses the eigenvectors of the smaller Gram matrix, with a relative error in
  /// σ_i of about 1e-16 (σ_1/σ_i)².  @throws Error kData if it does not converge.
  virtual SingularValues svd(TensorView<const double, 2> matrix, std::size_t rank) = 0;

  /// Returns the leading eigenvectors of a symmetric matrix [n, n], which is overwritten. O(n³) and O(rank · n²) for
  /// the vectors.  @throws Error kData if it does not converge.
  virtual Eigenvectors eigenvectors(TensorView<double, 2> matrix, const WantedVectors& wanted) = 0;

  /// Overwrites a symmetric positive definite matrix A [n, n] with its Cholesky factor L, A = L Lᵀ, and zeros in the
  /// upper triangle. n may be 0.  @throws Error kData if A is not positive definite.
  virtual void cholesky(TensorView<double, 2> matrix) = 0;

  /// x ← x · L or x ← x · L⁻¹. x: [m, n], which may be empty; lower: [n, n], its upper triangle is not read.
  virtual void multiply_lower(TensorView<double, 2> x, TensorView<const double, 2> lower, Triangular how) = 0;

  /// sum += Σ_rows x xᵀ in float64. x: [row, n]; sum: [n, n] host memory, both triangles.
  virtual void accumulate_second_moment(Operand x, TensorView<double, 2> sum) = 0;

  /// @param gram  [layer, query_head, chunk, chunk] host memory, which must outlive the returned object
  virtual std::unique_ptr<RopeGrams> rope_grams(TensorView<double, 4> gram) = 0;

  /// errors[h, c] += Σ_{i ≥ j} |Σ_{c' not in E_h, c' ≠ c} δ_c'(i,j)| for every chunk c not in E_h: the first-power
  /// score error of each candidate. δ, q, k, table as in RopeGrams. Quadratic in tokens, without a [token, token]
  /// array. The order of the sums does not depend on the number of threads.
  /// @param rotated  [query_head, chunk] host memory, 1 for the chunks of E_h
  /// @param errors   [query_head, chunk] host memory
  virtual void accumulate_rope_distance(BackendView<const float, 3> q, BackendView<const float, 3> k,
                                        const RopeTable& table, std::size_t first_position,
                                        TensorView<const std::uint8_t, 2> rotated, TensorView<double, 2> errors) = 0;
};

/// @throws Error kUnsupported if the backend's device has no calibration operations.
std::unique_ptr<CalibrationOps> make_calibration_ops(Backend& backend);

}  // namespace kvs::inline kernels
