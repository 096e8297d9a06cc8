// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cusolverDn.h>

#include <vector>

#include "core/dtype.h"
#include "core/tensor_view.h"
#include "kernels/backend.h"
#include "kernels/calibration_ops.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/device_array.h"

namespace kvs::cuda {

/// A cuSOLVER handle on the context's stream.
class Solver {
 public:
  explicit Solver(const Context& context);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  cusolverDnHandle_t handle() const noexcept { return handle_; }

 private:
  cusolverDnHandle_t handle_ = nullptr;
};

/// Converts a size: BLAS and LAPACK use 32-bit sizes.  @throws Error kUnsupported above them.
int to_int(std::size_t value);
/// @throws Error kInternal for a wrong argument (info < 0), kData if the iteration failed (info > 0).
void check_info(int info, const char* routine);
/// @throws Error kData naming the first value that is not finite.
void check_finite(TensorView<const double, 2> matrix, const char* where);

/// See CalibrationOps::svd: gesvd up to a smaller side of 1024, gram_svd above.
SingularValues svd(const Context& context, const Solver& solver, TensorView<const double, 2> matrix, std::size_t rank);
/// Like svd(), through the eigenvectors of the smaller Gram matrix (syevd).
SingularValues gram_svd(const Context& context, const Solver& solver, TensorView<const double, 2> matrix,
                        std::size_t rank);
/// See CalibrationOps::eigenvectors. Computes all vectors (syevd).
Eigenvectors eigenvectors(const Context& context, const Solver& solver, TensorView<double, 2> matrix,
                          const WantedVectors& wanted);
enum class VectorsAs { kRows, kColumns };
/// Returns `rank` vectors of `length` values from device memory in reverse order, as [rank, length] or [length, rank].
/// Vector i is multiplied by factor[i] (device memory; null: unchanged).
std::vector<double> descending(const Context& context, const double* ascending, const double* factor,
                               std::size_t length, std::size_t rank, VectorsAs layout);
/// See CalibrationOps::cholesky.
void cholesky(const Context& context, const Solver& solver, TensorView<double, 2> matrix);
/// See CalibrationOps::multiply_lower.
void multiply_lower(const Context& context, TensorView<double, 2> x, TensorView<const double, 2> lower, Triangular how);
/// See CalibrationOps::accumulate_second_moment. `type` is the element type of x: kF32 or kBF16. Each call copies the
/// sum (8 n² bytes) to the host once, so few calls with many rows are cheap.
void accumulate_second_moment(const Context& context, Operand x, DType type, TensorView<double, 2> sum);

}  // namespace kvs::cuda
