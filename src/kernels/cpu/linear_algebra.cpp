// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "kernels/cpu/lapack.h"
#include "kernels/cpu/lapack_library.h"

namespace kvs::cpu {
namespace {

constexpr std::size_t kDirectLimit = 1024;  // see CalibrationOps::svd

void check_finite(std::span<const double> values, const char* where) {
  const auto bad = std::ranges::find_if_not(values, [](double value) { return std::isfinite(value); });
  if (bad != values.end())
    throw Error(ErrorCode::kData, where,
                "found a value that is not finite at element " + std::to_string(bad - values.begin()) +
                    ", expected finite weights");
}

/// LAPACK's matrices are column-major: it sees a row-major M as Mᵀ, so left and right are exchanged.
SingularValues direct_svd(TensorView<const double, 2> matrix, std::size_t rank) {
  const std::size_t rows = matrix.extent(0), columns = matrix.extent(1), small = std::min(rows, columns);
  std::vector<double> work(matrix.span().begin(), matrix.span().end());
  SingularValues result{std::vector<double>(small), {}, {}};
  if (rank == 0) {
    check_lapack(lapack().dgesdd(LAPACK_COL_MAJOR, 'N', to_int(columns), to_int(rows), work.data(), to_int(columns),
                                 result.singular.data(), nullptr, 1, nullptr, 1),
                 "dgesdd");
    return result;
  }
  std::vector<double> right(columns * small), left(small * rows);  // column-major: [columns, small], [small, rows]
  check_lapack(lapack().dgesdd(LAPACK_COL_MAJOR, 'S', to_int(columns), to_int(rows), work.data(), to_int(columns),
                               result.singular.data(), right.data(), to_int(columns), left.data(), to_int(small)),
               "dgesdd");
  right.resize(columns * rank);
  result.right = std::move(right);
  result.left.resize(rows * rank);
  for (std::size_t row = 0; row < rows; ++row)
    std::copy_n(left.data() + row * small, rank, result.left.data() + row * rank);
  return result;
}

}  // namespace

SingularValues svd(TensorView<const double, 2> matrix, std::size_t rank) {
  const std::size_t small = std::min(matrix.extent(0), matrix.extent(1));
  if (rank > small)
    throw Error(
        ErrorCode::kUsage, "rank",
        "found " + std::to_string(rank) + ", expected at most the matrix's smaller side " + std::to_string(small));
  if (small == 0) return {};
  check_finite(matrix.span(), "singular value decomposition");
  return small <= kDirectLimit ? direct_svd(matrix, rank) : gram_svd(matrix, rank);
}

Eigenvectors eigenvectors(TensorView<double, 2> matrix, const WantedVectors& wanted) {
  const std::size_t n = matrix.extent(0);
  if (matrix.extent(1) != n) throw Error(ErrorCode::kInternal, "eigenvectors", "the matrix is not square");
  if (n == 0) return {};
  check_finite(matrix.span(), "eigenvectors");
  return leading_eigenvectors(matrix.span(), n, wanted);
}

void cholesky(TensorView<double, 2> matrix) {
  const std::size_t n = matrix.extent(0);
  if (matrix.extent(1) != n) throw Error(ErrorCode::kInternal, "cholesky", "the matrix is not square");
  if (n == 0) return;
  check_finite(matrix.span(), "Cholesky factor");
  // The row-major lower triangle is the column-major upper one: A = Uᵀ U with U = Lᵀ.
  const int info = lapack().dpotrf(LAPACK_COL_MAJOR, 'U', to_int(n), matrix.data(), to_int(n));
  if (info > 0)
    throw Error(ErrorCode::kData, "Cholesky factor",
                "the second moment is not positive definite at row " + std::to_string(info - 1));
  check_lapack(info, "dpotrf");
  for (std::size_t row = 0; row < n; ++row) std::fill_n(&matrix(row, row) + 1, n - row - 1, 0.0);
}

void multiply_lower(TensorView<double, 2> x, TensorView<const double, 2> lower, Triangular how) {
  const std::size_t rows = x.extent(0), n = x.extent(1);
  if (lower.shape() != std::array{n, n}) throw Error(ErrorCode::kInternal, "multiply_lower", "shapes do not fit");
  if (x.empty()) return;
  if (how == Triangular::kMultiply) {
    lapack().dtrmm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, to_int(rows), to_int(n), 1.0,
                   lower.data(), to_int(n), x.data(), to_int(n));
  } else {
    lapack().dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, to_int(rows), to_int(n), 1.0,
                   lower.data(), to_int(n), x.data(), to_int(n));
  }
}

void accumulate_second_moment(Operand x, DType type, TensorView<double, 2> sum) {
  constexpr std::size_t kSlab = 512;  // number of rows widened at once
  const std::size_t n = x.columns;
  if (sum.shape() != std::array{n, n}) throw Error(ErrorCode::kInternal, "second moment", "shapes do not fit");
  std::vector<double> slab(std::min(kSlab, x.rows) * n);
  for (std::size_t first = 0; first < x.rows; first += kSlab) {
    const std::size_t count = std::min(kSlab, x.rows - first);
    if (type == DType::kBF16) {
      const auto* from = static_cast<const std::uint16_t*>(x.data) + first * n;
      std::transform(from, from + count * n, slab.begin(), bf16_to_f32);
    } else {
      const auto* from = static_cast<const float*>(x.data) + first * n;
      std::copy(from, from + count * n, slab.begin());
    }
    lapack().dsyrk(CblasRowMajor, CblasLower, CblasTrans, to_int(n), to_int(count), 1.0, slab.data(), to_int(n), 1.0,
                   sum.data(), to_int(n));
  }
  for (std::size_t row = 0; row < n; ++row)
    for (std::size_t column = row + 1; column < n; ++column) sum(row, column) = sum(column, row);
}

}  // namespace kvs::cpu
