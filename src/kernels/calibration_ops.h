#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace kvs {

/// Leading singular triplets of M ≈ left · diag(singular) · right.
struct SingularValues {
  std::vector<double> singular;  // all min(m, n), descending
  std::vector<double> left;      // [m, rank], row-major, orthonormal columns
  std::vector<double> right;     // [rank, n], row-major, orthonormal rows
};

enum class Triangular { kMultiply, kSolve };

/// RoPElite's Gram matrices of several layers, which a device keeps until all of them are there: a copy to the host
/// after each layer would leave it idle. Linear in tokens: running sums over j, docs/elitekv.md derives it. Source:
/// EliteKV's RoPElite with a squared distance.
class RopeGrams {
 public:
  virtual ~RopeGrams() = default;

  /// gram[layer, h, c, c'] += Σ_{i ≥ j} δ_c(i,j) δ_c'(i,j), δ_c = rotated − unrotated contribution of chunk c to
  /// q_i·k_j (no 1/√d). q: [query_head, token, head_dim] and k: [kv_head, token, head_dim], both before RoPE, token t
  /// at position first_position + t of `table`. Channels that no chunk holds and the table's factor are alike in both
  /// scores: the first leave no δ, the second stays in both.
  virtual void add(std::size_t layer, BackendView<const float, 3> q, BackendView<const float, 3> k,
                   const RopeTable& table, std::size_t first_position) = 0;
  /// Brings what was added to `gram`; once, after the last add(). Without it, gram may lack some of it.
  virtual void finish() = 0;
};

/// Float64 linear algebra and the sums over tokens that the calibrators need.
class CalibrationOps {
 public:
  virtual ~CalibrationOps() = default;

  /// SVD of `matrix` [m, n] with the leading `rank` vectors (0: values only).
  /// Up to min(m, n) = 1024 by divide and conquer on M itself; above by the eigenvectors of the smaller Gram matrix,
  /// whose relative error in σ_i is about 1e-16 (σ_1/σ_i)².  @throws Error kData if it does not converge.
  virtual SingularValues svd(TensorView<const double, 2> matrix, std::size_t rank) = 0;

  /// Overwrites a symmetric positive definite [n, n] with its Cholesky factor L, A = L Lᵀ; the upper triangle with
  /// zeros.
  /// @throws Error kData if it is not positive definite.
  virtual void cholesky(TensorView<double, 2> matrix) = 0;

  /// x ← x · L or x ← x · L⁻¹. x: [m, n]; lower: [n, n], its upper triangle is not read.
  virtual void multiply_lower(TensorView<double, 2> x, TensorView<const double, 2> lower, Triangular how) = 0;

  /// sum += Σ_rows x xᵀ in float64. x: [row, n]; sum: [n, n] host memory, both triangles.
  virtual void accumulate_second_moment(Operand x, TensorView<double, 2> sum) = 0;

  /// @param gram  [layer, query_head, chunk, chunk] host memory, which must outlive what is returned
  virtual std::unique_ptr<RopeGrams> rope_grams(TensorView<double, 4> gram) = 0;

  /// errors[h, c] += Σ_{i ≥ j} |Σ_{c' not in E_h, c' ≠ c} δ_c'(i,j)| for every chunk c not in E_h: the first-power
  /// score error of each candidate. δ, q, k, table as in RopeGrams. Quadratic in tokens, no [token, token] array; the
  /// sums are taken in an order that does not depend on the number of threads.
  /// @param rotated  [query_head, chunk] host memory, 1 for the chunks of E_h
  /// @param errors   [query_head, chunk] host memory
  virtual void accumulate_rope_distance(BackendView<const float, 3> q, BackendView<const float, 3> k,
                                        const RopeTable& table, std::size_t first_position,
                                        TensorView<const std::uint8_t, 2> rotated, TensorView<double, 2> errors) = 0;
};

/// @throws Error kUnsupported if the backend's device has none.
std::unique_ptr<CalibrationOps> make_calibration_ops(Backend& backend);

}  // namespace kvs
