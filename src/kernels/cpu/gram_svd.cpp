// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/lapack.h"
#include "kernels/cpu/lapack_library.h"
#include "kernels/cpu/linear_algebra.h"

namespace kvs::cpu {
namespace {

/// Eigenvalues of a symmetric matrix, ascending, and the eigenvectors of the `rank` largest.
struct Eigen {
  std::vector<double> values;
  std::vector<double> vectors;  // [rank, n] row-major, one vector per row, ascending
};

/// Householder tridiagonalisation, divide and conquer, and the back transformation of the wanted vectors only (dsyevd
/// computes all vectors). `lower` is column-major; its lower triangle is overwritten.
Eigen leading_eigenvectors(std::vector<double> lower, std::size_t n, std::size_t rank) {
  const int size = to_int(n), wanted = to_int(rank);
  Eigen result{std::vector<double>(n), {}};
  std::vector<double> off_diagonal(n), tau(n);
  check_lapack(lapack().dsytrd(LAPACK_COL_MAJOR, 'L', size, lower.data(), size, result.values.data(),
                               off_diagonal.data(), tau.data()),
               "dsytrd");
  if (rank == 0) {
    check_lapack(lapack().dsterf(size, result.values.data(), off_diagonal.data()), "dsterf");
    return result;
  }
  std::vector<double> all(n * n);
  check_lapack(
      lapack().dstedc(LAPACK_COL_MAJOR, 'I', size, result.values.data(), off_diagonal.data(), all.data(), size),
      "dstedc");
  result.vectors.assign(all.end() - static_cast<std::ptrdiff_t>(rank * n), all.end());
  check_lapack(lapack().dormtr(LAPACK_COL_MAJOR, 'L', 'L', 'N', size, wanted, lower.data(), size, tau.data(),
                               result.vectors.data(), size),
               "dormtr");
  return result;
}

/// Returns M Mᵀ if M has no more rows than columns, else Mᵀ M: the lower triangle in column-major order.
std::vector<double> smaller_gram(TensorView<const double, 2> matrix) {
  const int rows = to_int(matrix.extent(0)), columns = to_int(matrix.extent(1));
  const bool wide = rows <= columns;
  const int n = std::min(rows, columns);
  std::vector<double> gram(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  lapack().dsyrk(CblasRowMajor, CblasUpper, wide ? CblasNoTrans : CblasTrans, n, wide ? columns : rows, 1.0,
                 matrix.data(), columns, 0.0, gram.data(), n);
  return gram;
}

/// x[i, j] *= factor[i], or factor[j] with `by_column`.
void scale(std::vector<double>& x, const std::vector<double>& factor, bool by_column) {
  const std::size_t rows = by_column ? x.size() / factor.size() : factor.size(), columns = x.size() / rows;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      x[row * columns + column] *= factor[by_column ? column : row];
}

}  // namespace

SingularValues gram_svd(TensorView<const double, 2> matrix, std::size_t rank) {
  const std::size_t rows = matrix.extent(0), columns = matrix.extent(1), n = std::min(rows, columns);
  Eigen eigen = leading_eigenvectors(smaller_gram(matrix), n, rank);
  SingularValues result;
  result.singular.resize(n);
  std::ranges::transform(eigen.values.rbegin(), eigen.values.rend(), result.singular.begin(),
                         [](double value) { return std::sqrt(std::max(value, 0.0)); });
  if (rank == 0) return result;
  // Below `floor`, the Gram matrix holds no information on σ: the triplet adds nothing and its other vector stays zero.
  const double floor =
      result.singular.front() * std::sqrt(static_cast<double>(n) * std::numeric_limits<double>::epsilon());
  std::vector<double> inverse(rank);
  for (std::size_t i = 0; i < rank; ++i) inverse[i] = result.singular[i] > floor ? 1.0 / result.singular[i] : 0.0;

  std::vector<double> known(rank * n);  // [rank, n], descending
  for (std::size_t i = 0; i < rank; ++i)
    std::copy_n(eigen.vectors.data() + (rank - 1 - i) * n, n, known.data() + i * n);
  const int m_int = to_int(rows), n_int = to_int(columns), r = to_int(rank);
  const auto transposed = [&](const std::vector<double>& from) {
    std::vector<double> to(from.size());
    for (std::size_t i = 0; i < rank; ++i)
      for (std::size_t j = 0; j < n; ++j) to[j * rank + i] = from[i * n + j];
    return to;
  };
  if (rows <= columns) {
    result.right.resize(rank * columns);
    lapack().dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, r, n_int, m_int, 1.0, known.data(), m_int, matrix.data(),
                   n_int, 0.0, result.right.data(), n_int);
    scale(result.right, inverse, false);
    result.left = transposed(known);
  } else {
    result.left.resize(rows * rank);
    lapack().dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m_int, r, n_int, 1.0, matrix.data(), n_int, known.data(),
                   n_int, 0.0, result.left.data(), r);
    scale(result.left, inverse, true);
    result.right = std::move(known);
  }
  return result;
}

}  // namespace kvs::cpu
