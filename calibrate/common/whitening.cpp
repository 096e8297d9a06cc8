// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/whitening.h"

#include <algorithm>
#include <cmath>

namespace kvs::inline calibrate {

void damped_cholesky(CalibrationOps& ops, TensorView<double, 2> matrix, double damping) {
  constexpr double kLeast = 1e-30;  // for a matrix of zeros
  const std::size_t size = matrix.extent(0);
  double trace = 0;
  for (std::size_t n = 0; n < size; ++n) trace += matrix(n, n);
  for (std::size_t n = 0; n < size; ++n) matrix(n, n) += std::max(damping * trace / static_cast<double>(size), kLeast);
  ops.cholesky(matrix);
}

std::vector<double> whitening_factor(CalibrationOps& ops, std::span<const double> second_moment, std::size_t tokens) {
  constexpr double kDamping = 1e-4;
  const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(second_moment.size()))));
  std::vector<double> factor(second_moment.begin(), second_moment.end());
  for (double& value : factor) value /= static_cast<double>(tokens);
  damped_cholesky(ops, {factor, {size, size}}, kDamping);
  return factor;
}

}  // namespace kvs::inline calibrate
