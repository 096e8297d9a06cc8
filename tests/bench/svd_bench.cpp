// SPDX-License-Identifier: Apache-2.0
// Times CalibrationOps::svd on a matrix from a file, checks the factors against the singular values, and writes the
// values for jlrd_bench.py to compare with PyTorch's.
//
// Usage: svd_bench MATRIX.f32 ROWS COLUMNS RANK VALUES.f64 [REPEATS]     (raw, little-endian, row-major)
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cpu/calibration_ops.h"
#include "tests/bench/program.h"

namespace {

using kvs::SingularValues;
using kvs::TensorView;

std::vector<double> read_matrix(const std::string& path, std::size_t size) {
  std::ifstream file(path, std::ios::binary);
  std::vector<float> values(size);
  if (!file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(size * sizeof(float))))
    throw std::runtime_error(path + ": cannot read " + std::to_string(size) + " values");
  return {values.begin(), values.end()};
}

/// Returns the largest |x · v_k − u_k σ_k| / ‖x‖ over a sample of M's rows x and of the singular triplets.
double projection_error(TensorView<const double, 2> m, const SingularValues& svd, std::size_t rank) {
  constexpr std::size_t kStride = 101;
  const std::size_t columns = m.extent(1);
  double worst = 0;
  for (std::size_t row = 0; row < m.extent(0); row += kStride) {
    const std::span<const double> x = m.slice(row).span();
    double norm = 0;
    for (const double value : x) norm += value * value;
    for (std::size_t k = 0; k < rank; k += kStride) {
      double dot = 0;
      for (std::size_t column = 0; column < columns; ++column) dot += x[column] * svd.right[k * columns + column];
      worst = std::max(worst, std::abs(dot - svd.left[row * rank + k] * svd.singular[k]) / std::sqrt(norm));
    }
  }
  return worst;
}

int run(int argc, char** argv) {
  const std::size_t rows = std::stoul(argv[2]), columns = std::stoul(argv[3]), rank = std::stoul(argv[4]);
  const int repeats = argc > 6 ? std::atoi(argv[6]) : 1;
  const std::vector<double> matrix = read_matrix(argv[1], rows * columns);
  const TensorView<const double, 2> view(matrix, {rows, columns});
  const auto ops = kvs::make_cpu_calibration_ops(kvs::DType::kF32);
  double best = 1e30;
  SingularValues svd;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    svd = ops->svd(view, rank);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  const double error = projection_error(view, svd, rank);
  if (!(error < 1e-10)) throw std::runtime_error("the singular vectors are wrong by " + std::to_string(error));
  std::ofstream(argv[5], std::ios::binary)
      .write(reinterpret_cast<const char*>(svd.singular.data()),
             static_cast<std::streamsize>(svd.singular.size() * sizeof(double)));
  std::printf("%.3f\n", best);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 5, "svd_bench MATRIX.f32 ROWS COLUMNS RANK VALUES.f64 [REPEATS]", run);
}
