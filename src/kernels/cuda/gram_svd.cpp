// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cuda/check.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/linear_algebra.h"

namespace kvs::cuda {
namespace {

/// Returns the eigenvalues, ascending, of the symmetric matrix whose column-major lower triangle is `a`. If `vectors`
/// is set, `a` is overwritten with the eigenvectors, one per column.
std::vector<double> eigenvalues(const Context& context, const Solver& solver, double* a, std::size_t n, bool vectors) {
  const cusolverEigMode_t mode = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  const DeviceArray<double> values(context, n);
  const DeviceArray<int> info(context, 1);
  int work_size = 0;
  check_cusolver(cusolverDnDsyevd_bufferSize(solver.handle(), mode, CUBLAS_FILL_MODE_LOWER, to_int(n), a, to_int(n),
                                             values.data(), &work_size),
                 "cusolverDnDsyevd_bufferSize");
  const DeviceArray<double> work(context, static_cast<std::size_t>(work_size));
  check_cusolver(cusolverDnDsyevd(solver.handle(), mode, CUBLAS_FILL_MODE_LOWER, to_int(n), a, to_int(n), values.data(),
                                  work.data(), work_size, info.data()),
                 "cusolverDnDsyevd");
  check_info(info.to_host()[0], "syevd");
  return values.to_host();
}

}  // namespace

Eigenvectors eigenvectors(const Context& context, const Solver& solver, TensorView<double, 2> matrix,
                          const WantedVectors& wanted) {
  const std::size_t n = matrix.extent(0);
  if (matrix.extent(1) != n) throw Error(ErrorCode::kInternal, "eigenvectors", "the matrix is not square");
  if (n == 0) return {};
  check_finite(matrix, "eigenvectors");
  const DeviceArray<double> a(context, std::span<const double>(matrix.span()));
  const std::vector<double> ascending = eigenvalues(context, solver, a.data(), n, true);
  Eigenvectors result{{ascending.rbegin(), ascending.rend()}, {}};
  const std::size_t rank = std::min(n, wanted(result.values));
  result.vectors = descending(context, a.data() + (n - rank) * n, nullptr, n, rank, VectorsAs::kRows);
  return result;
}

SingularValues gram_svd(const Context& context, const Solver& solver, TensorView<const double, 2> matrix,
                        std::size_t rank) {
  const std::size_t rows = matrix.extent(0), columns = matrix.extent(1), n = std::min(rows, columns),
                    other = std::max(rows, columns);
  const bool wide = rows <= columns;
  const double one = 1, zero = 0;
  // In column-major order, x is Mᵀ [columns, rows]: M Mᵀ = xᵀ x, Mᵀ M = x xᵀ.
  const DeviceArray<double> x(context, matrix.span()), gram(context, n * n);
  check_cublas(cublasDsyrk(context.blas(), CUBLAS_FILL_MODE_LOWER, wide ? CUBLAS_OP_T : CUBLAS_OP_N, to_int(n),
                           to_int(other), &one, x.data(), to_int(columns), &zero, gram.data(), to_int(n)),
               "cublasDsyrk");
  const std::vector<double> ascending = eigenvalues(context, solver, gram.data(), n, rank > 0);
  SingularValues result;
  result.singular.resize(n);
  std::ranges::transform(ascending.rbegin(), ascending.rend(), result.singular.begin(),
                         [](double value) { return std::sqrt(std::max(value, 0.0)); });
  if (rank == 0) return result;
  // Below `floor`, the Gram matrix holds no information on σ: the triplet adds nothing and its other vector stays zero.
  const double floor =
      result.singular.front() * std::sqrt(static_cast<double>(n) * std::numeric_limits<double>::epsilon());
  std::vector<double> inverse(rank);
  for (std::size_t i = 0; i < rank; ++i) inverse[i] = result.singular[i] > floor ? 1.0 / result.singular[i] : 0.0;

  const double* const known = gram.data() + (n - rank) * n;  // the last columns have the largest eigenvalues
  const DeviceArray<double> found(context, rank * other), factor(context, std::span<const double>(inverse));
  check_cublas(
      cublasDgemm(context.blas(), wide ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_OP_N, to_int(other), to_int(rank), to_int(n),
                  &one, x.data(), to_int(columns), known, to_int(n), &zero, found.data(), to_int(other)),
      "cublasDgemm");
  const double *const left = wide ? known : found.data(), *const right = wide ? found.data() : known;
  result.left = descending(context, left, wide ? nullptr : factor.data(), rows, rank, VectorsAs::kColumns);
  result.right = descending(context, right, wide ? factor.data() : nullptr, columns, rank, VectorsAs::kRows);
  return result;
}

}  // namespace kvs::cuda
