#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace kvs {

/// Leading singular triplets of M ≈ left · diag(singular) · right.
struct SingularValues {
  std::vector<double> singular;  // all min(m, n), descending
  std::vector<double> left;      // [m, rank], row-major, orthonormal columns
  std::vector<double> right;     // [rank, n], row-major, orthonormal rows
};

/// Float64 linear algebra and the sums over tokens that the calibrators need.
class CalibrationOps {
 public:
  virtual ~CalibrationOps() = default;

  /// SVD of `matrix` [m, n] with the leading `rank` vectors (0: values only).
  /// Up to min(m, n) = 1024 by divide and conquer on M itself; above by the eigenvectors of the smaller Gram matrix,
  /// whose relative error in σ_i is about 1e-16 (σ_1/σ_i)².  @throws Error kData if it does not converge.
  virtual SingularValues svd(TensorView<const double, 2> matrix, std::size_t rank) = 0;

  /// sum += Σ_rows x xᵀ in float64. x: [row, n]; sum: [n, n] host memory, both triangles.
  virtual void accumulate_second_moment(Operand x, TensorView<double, 2> sum) = 0;

  /// gram[h, c, c'] += Σ_{i ≥ j} δ_c(i,j) δ_c'(i,j), δ_c = rotated − unrotated contribution of chunk c to q_i·k_j
  /// (no 1/√d). q: [query_head, token, head_dim] and k: [kv_head, token, head_dim], both before RoPE, token t at
  /// position first_position + t of `table`; gram: [query_head, head_dim/2, head_dim/2] host memory. Linear in tokens:
  /// running sums over j, docs/elitekv.md derives it. Source: EliteKV's RoPElite with a squared distance.
  virtual void accumulate_rope_gram(BackendView<const float, 3> q, BackendView<const float, 3> k,
                                    const RopeTable& table, std::size_t first_position, TensorView<double, 3> gram) = 0;
};

std::unique_ptr<CalibrationOps> make_calibration_ops(Backend& backend);

}  // namespace kvs
