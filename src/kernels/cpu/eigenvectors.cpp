// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "kernels/cpu/lapack.h"
#include "kernels/cpu/lapack_library.h"
#include "kernels/cpu/linear_algebra.h"

namespace kvs::cpu {

// Householder tridiagonalisation, divide and conquer, and the back transformation of the wanted vectors only (dsyevd
// computes all vectors).
Eigenvectors leading_eigenvectors(std::span<double> lower, std::size_t n, const WantedVectors& wanted) {
  const int size = to_int(n);
  std::vector<double> values(n), off_diagonal(n), tau(n);
  check_lapack(
      lapack().dsytrd(LAPACK_COL_MAJOR, 'L', size, lower.data(), size, values.data(), off_diagonal.data(), tau.data()),
      "dsytrd");
  Eigenvectors result;
  if (!wanted) {
    check_lapack(lapack().dsterf(size, values.data(), off_diagonal.data()), "dsterf");
    result.values.assign(values.rbegin(), values.rend());
    return result;
  }
  std::vector<double> all(n * n);
  check_lapack(lapack().dstedc(LAPACK_COL_MAJOR, 'I', size, values.data(), off_diagonal.data(), all.data(), size),
               "dstedc");
  result.values.assign(values.rbegin(), values.rend());
  const std::size_t rank = std::min(n, wanted(result.values));
  if (rank == 0) return result;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto vector = all.end() - static_cast<std::ptrdiff_t>((i + 1) * n);
    result.vectors.insert(result.vectors.end(), vector, vector + static_cast<std::ptrdiff_t>(n));
  }
  check_lapack(lapack().dormtr(LAPACK_COL_MAJOR, 'L', 'L', 'N', size, to_int(rank), lower.data(), size, tau.data(),
                               result.vectors.data(), size),
               "dormtr");
  return result;
}

}  // namespace kvs::cpu
