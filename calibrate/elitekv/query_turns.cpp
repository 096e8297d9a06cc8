// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/query_turns.h"

#include <Eigen/Dense>
#include <algorithm>

namespace kvs::inline calibrate {

std::vector<std::complex<double>> query_turns(TensorView<const double, 2> pairs, std::span<const std::size_t> elite) {
  constexpr double kRidge = 1e-2, kLeast = 1e-30;
  const std::size_t chunks = pairs.extent(0) / 3;
  std::vector<std::complex<double>> turns(chunks, 1);
  std::vector<std::size_t> left;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk)
    if (std::ranges::find(elite, chunk) == elite.end()) left.push_back(chunk);
  const std::size_t count = left.size();
  const auto feature = [&](std::size_t n) { return left[n % count] + chunks * (1 + n / count); };
  Eigen::MatrixXd normal(2 * count, 2 * count);
  Eigen::VectorXd target = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(2 * count));
  for (std::size_t row = 0; row < 2 * count; ++row) {
    const auto at = static_cast<Eigen::Index>(row);
    for (std::size_t column = 0; column < 2 * count; ++column)
      normal(at, static_cast<Eigen::Index>(column)) = pairs(feature(row), feature(column));
    for (const std::size_t chunk : left) target(at) += pairs(feature(row), chunk);
    const double ridge = kRidge * normal(at, at) + kLeast;
    normal(at, at) += ridge;
    if (row < count) target(at) += ridge;
  }
  const Eigen::VectorXd solution = normal.ldlt().solve(target);
  for (std::size_t n = 0; n < count; ++n)
    turns[left[n]] = {solution(static_cast<Eigen::Index>(n)), -solution(static_cast<Eigen::Index>(count + n))};
  return turns;
}

void turn_rows(std::span<const std::complex<double>> turns, std::span<float> rows, std::size_t columns) {
  for (std::size_t chunk = 0; chunk < turns.size(); ++chunk)
    for (std::size_t column = 0; column < columns; ++column) {
      float &first = rows[chunk * columns + column], &second = rows[(chunk + turns.size()) * columns + column];
      const std::complex<double> turned = turns[chunk] * std::complex<double>(first, second);
      first = static_cast<float>(turned.real());
      second = static_cast<float>(turned.imag());
    }
}

}  // namespace kvs::inline calibrate
