// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cpu/lapack.h"
#include "kernels/cpu/lapack_library.h"
#include "kernels/cpu/linear_algebra.h"

namespace kvs::cpu {
namespace {

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
  std::vector<double> gram = smaller_gram(matrix);
  WantedVectors wanted;
  if (rank > 0) wanted = [&](std::span<const double>) { return rank; };
  Eigenvectors eigen = leading_eigenvectors(gram, n, wanted);
  SingularValues result;
  result.singular.resize(n);
  std::ranges::transform(eigen.values, result.singular.begin(),
                         [](double value) { return std::sqrt(std::max(value, 0.0)); });
  if (rank == 0) return result;
  // Below `floor`, the Gram matrix holds no information on σ: the triplet adds nothing and its other vector stays zero.
  const double floor =
      result.singular.front() * std::sqrt(static_cast<double>(n) * std::numeric_limits<double>::epsilon());
  std::vector<double> inverse(rank);
  for (std::size_t i = 0; i < rank; ++i) inverse[i] = result.singular[i] > floor ? 1.0 / result.singular[i] : 0.0;

  std::vector<double> known = std::move(eigen.vectors);
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
