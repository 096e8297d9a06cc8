// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/calibration_ops.h"

#include "kernels/cpu/linear_algebra.h"
#include "kernels/cpu/rope_sums.h"

namespace kvs::inline kernels {
namespace {

/// Adds to the matrices immediately.
class CpuRopeGrams final : public RopeGrams {
 public:
  explicit CpuRopeGrams(TensorView<double, 4> gram) : gram_(gram) {}
  void add(std::size_t layer, BackendView<const float, 3> q, BackendView<const float, 3> k, const RopeTable& table,
           std::size_t first_position) override {
    cpu::accumulate_rope_gram(RopeOperands(q, k, table, first_position), gram_.slice(layer));
  }
  void finish() override {}

 private:
  TensorView<double, 4> gram_;
};

class CpuCalibrationOps final : public CalibrationOps {
 public:
  explicit CpuCalibrationOps(DType compute_type) : compute_type_(compute_type) {}

  SingularValues svd(TensorView<const double, 2> matrix, std::size_t rank) override { return cpu::svd(matrix, rank); }
  Eigenvectors eigenvectors(TensorView<double, 2> matrix, const WantedVectors& wanted) override {
    return cpu::eigenvectors(matrix, wanted);
  }
  void cholesky(TensorView<double, 2> matrix) override { cpu::cholesky(matrix); }
  void multiply_lower(TensorView<double, 2> x, TensorView<const double, 2> lower, Triangular how) override {
    cpu::multiply_lower(x, lower, how);
  }
  void accumulate_second_moment(Operand x, TensorView<double, 2> sum) override {
    cpu::accumulate_second_moment(x, compute_type_, sum);
  }
  std::unique_ptr<RopeGrams> rope_grams(TensorView<double, 4> gram) override {
    return std::make_unique<CpuRopeGrams>(gram);
  }
  void accumulate_rope_distance(BackendView<const float, 3> q, BackendView<const float, 3> k, const RopeTable& table,
                                std::size_t first_position, TensorView<const std::uint8_t, 2> rotated,
                                TensorView<double, 2> errors) override {
    cpu::accumulate_rope_distance(RopeOperands(q, k, table, first_position), rotated, errors);
  }

 private:
  DType compute_type_;
};

}  // namespace

std::unique_ptr<CalibrationOps> make_cpu_calibration_ops(DType compute_type) {
  return std::make_unique<CpuCalibrationOps>(compute_type);
}

}  // namespace kvs::inline kernels
