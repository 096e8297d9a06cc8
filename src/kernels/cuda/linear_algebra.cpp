// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/linear_algebra.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/device_array.h"

namespace kvs::cuda {
namespace {

constexpr std::size_t kDirectLimit = 1024;  // see CalibrationOps::svd

/// M = U diag(S) Vᵀ by QR iterations. gesvd requires at least as many rows as columns, and a row-major M is a
/// column-major Mᵀ. So a wide M is passed unchanged, with U and V exchanged, and a tall M is transposed first.
SingularValues direct_svd(const Context& context, const Solver& solver, TensorView<const double, 2> matrix,
                          std::size_t rank) {
  const std::size_t rows = matrix.extent(0), columns = matrix.extent(1);
  const std::size_t big = std::max(rows, columns), small = std::min(rows, columns);
  const bool wide = rows <= columns;
  const double one = 1, zero = 0;
  DeviceArray<double> a(context, matrix.span());  // column-major [big, small] from here on
  if (!wide) {
    DeviceArray<double> turned(context, a.size());
    check_cublas(cublasDgeam(context.blas(), CUBLAS_OP_T, CUBLAS_OP_N, to_int(rows), to_int(columns), &one, a.data(),
                             to_int(columns), &zero, turned.data(), to_int(rows), turned.data(), to_int(rows)),
                 "cublasDgeam");
    a = std::move(turned);
  }
  const bool vectors = rank > 0;
  const DeviceArray<double> s(context, small), u(context, vectors ? big * small : 0),
      vt(context, vectors ? small * small : 0);
  const DeviceArray<int> info(context, 1);
  int work_size = 0;
  check_cusolver(cusolverDnDgesvd_bufferSize(solver.handle(), to_int(big), to_int(small), &work_size),
                 "cusolverDnDgesvd_bufferSize");
  const DeviceArray<double> work(context, static_cast<std::size_t>(work_size));
  const signed char job = vectors ? 'S' : 'N';
  check_cusolver(
      cusolverDnDgesvd(solver.handle(), job, job, to_int(big), to_int(small), a.data(), to_int(big), s.data(), u.data(),
                       to_int(big), vt.data(), to_int(small), work.data(), work_size, nullptr, info.data()),
      "cusolverDnDgesvd");
  check_info(info.to_host()[0], "gesvd");
  SingularValues result{s.to_host(), {}, {}};
  if (!vectors) return result;
  const std::vector<double> long_side = u.to_host(), short_side = vt.to_host();
  // Long vector i is column i of U and contiguous. Short vector i is row i of Vᵀ, with stride `small`.
  result.left.resize(rows * rank);
  result.right.resize(rank * columns);
  for (std::size_t i = 0; i < rank; ++i) {
    for (std::size_t at = 0; at < rows; ++at)
      result.left[at * rank + i] = wide ? short_side[at * small + i] : long_side[i * big + at];
    for (std::size_t at = 0; at < columns; ++at)
      result.right[i * columns + at] = wide ? long_side[i * big + at] : short_side[at * small + i];
  }
  return result;
}

}  // namespace

Solver::Solver(const Context& context) {
  check_cusolver(cusolverDnCreate(&handle_), "cusolverDnCreate");
  const cusolverStatus_t status = cusolverDnSetStream(handle_, context.stream());
  if (status != CUSOLVER_STATUS_SUCCESS) (void)cusolverDnDestroy(handle_);
  check_cusolver(status, "cusolverDnSetStream");
}
Solver::~Solver() { (void)cusolverDnDestroy(handle_); }

int to_int(std::size_t value) {
  if (value > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Error(ErrorCode::kUnsupported, "linear algebra",
                "found a matrix with " + std::to_string(value) + " rows or columns, expected fewer than 2^31");
  return static_cast<int>(value);
}

void check_info(int info, const char* routine) {
  if (info < 0) throw Error(ErrorCode::kInternal, routine, "argument " + std::to_string(-info) + " is not valid");
  if (info > 0) throw Error(ErrorCode::kData, routine, "did not converge (info " + std::to_string(info) + ")");
}

void check_finite(TensorView<const double, 2> matrix, const char* where) {
  const auto values = matrix.span();
  const auto bad = std::ranges::find_if_not(values, [](double value) { return std::isfinite(value); });
  if (bad != values.end())
    throw Error(ErrorCode::kData, where,
                "found a value that is not finite at element " + std::to_string(bad - values.begin()) +
                    ", expected finite weights");
}

SingularValues svd(const Context& context, const Solver& solver, TensorView<const double, 2> matrix, std::size_t rank) {
  const std::size_t small = std::min(matrix.extent(0), matrix.extent(1));
  if (rank > small)
    throw Error(
        ErrorCode::kUsage, "rank",
        "found " + std::to_string(rank) + ", expected at most the matrix's smaller side " + std::to_string(small));
  if (small == 0) return {};
  check_finite(matrix, "singular value decomposition");
  return small <= kDirectLimit ? direct_svd(context, solver, matrix, rank) : gram_svd(context, solver, matrix, rank);
}

void cholesky(const Context& context, const Solver& solver, TensorView<double, 2> matrix) {
  const std::size_t n = matrix.extent(0);
  if (matrix.extent(1) != n) throw Error(ErrorCode::kInternal, "cholesky", "the matrix is not square");
  if (n == 0) return;
  check_finite(matrix, "Cholesky factor");
  const DeviceArray<double> a(context, std::span<const double>(matrix.span()));
  const DeviceArray<int> info(context, 1);
  int work_size = 0;
  // The row-major lower triangle is the column-major upper one: A = Uᵀ U with U = Lᵀ.
  check_cusolver(
      cusolverDnDpotrf_bufferSize(solver.handle(), CUBLAS_FILL_MODE_UPPER, to_int(n), a.data(), to_int(n), &work_size),
      "cusolverDnDpotrf_bufferSize");
  const DeviceArray<double> work(context, static_cast<std::size_t>(work_size));
  check_cusolver(cusolverDnDpotrf(solver.handle(), CUBLAS_FILL_MODE_UPPER, to_int(n), a.data(), to_int(n), work.data(),
                                  work_size, info.data()),
                 "cusolverDnDpotrf");
  const int status = info.to_host()[0];
  if (status > 0)
    throw Error(ErrorCode::kData, "Cholesky factor",
                "the second moment is not positive definite at row " + std::to_string(status - 1));
  check_info(status, "potrf");
  context.download(matrix.data(), a.data(), n * n * sizeof(double));
  for (std::size_t row = 0; row < n; ++row) std::fill_n(matrix.data() + row * n + row + 1, n - row - 1, 0.0);
}

void multiply_lower(const Context& context, TensorView<double, 2> x, TensorView<const double, 2> lower,
                    Triangular how) {
  const std::size_t rows = x.extent(0), n = x.extent(1);
  if (lower.shape() != std::array{n, n}) throw Error(ErrorCode::kInternal, "multiply_lower", "shapes do not fit");
  if (x.empty()) return;
  const DeviceArray<double> b(context, std::span<const double>(x.span())), l(context, lower.span());
  const double one = 1;
  // In column-major order the operands are xᵀ [n, rows] and the upper U = Lᵀ: (x L)ᵀ = U xᵀ, and (x L⁻¹)ᵀ = U⁻¹ xᵀ.
  if (how == Triangular::kMultiply) {
    check_cublas(
        cublasDtrmm(context.blas(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
                    to_int(n), to_int(rows), &one, l.data(), to_int(n), b.data(), to_int(n), b.data(), to_int(n)),
        "cublasDtrmm");
  } else {
    check_cublas(
        cublasDtrsm(context.blas(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
                    to_int(n), to_int(rows), &one, l.data(), to_int(n), b.data(), to_int(n)),
        "cublasDtrsm");
  }
  context.download(x.data(), b.data(), x.size() * sizeof(double));
}

}  // namespace kvs::cuda
