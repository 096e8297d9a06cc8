// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/calibration_ops.h"

#include "kernels/cuda/linear_algebra.h"
#include "kernels/cuda/rope_sums.h"

namespace kvs::cuda {
namespace {

class CudaCalibrationOps final : public CalibrationOps {
 public:
  CudaCalibrationOps(const Context& context, DType compute_type)
      : context_(context), solver_(context), compute_type_(compute_type) {}

  SingularValues svd(TensorView<const double, 2> matrix, std::size_t rank) override {
    return cuda::svd(context_, solver_, matrix, rank);
  }
  Eigenvectors eigenvectors(TensorView<double, 2> matrix, const WantedVectors& wanted) override {
    return cuda::eigenvectors(context_, solver_, matrix, wanted);
  }
  void cholesky(TensorView<double, 2> matrix) override { cuda::cholesky(context_, solver_, matrix); }
  void multiply_lower(TensorView<double, 2> x, TensorView<const double, 2> lower, Triangular how) override {
    cuda::multiply_lower(context_, x, lower, how);
  }
  void accumulate_second_moment(Operand x, TensorView<double, 2> sum) override {
    cuda::accumulate_second_moment(context_, x, compute_type_, sum);
  }
  std::unique_ptr<RopeGrams> rope_grams(TensorView<double, 4> gram) override {
    return cuda::make_rope_grams(context_, gram);
  }
  void accumulate_rope_distance(BackendView<const float, 3> q, BackendView<const float, 3> k, const RopeTable& table,
                                std::size_t first_position, TensorView<const std::uint8_t, 2> rotated,
                                TensorView<double, 2> errors) override {
    cuda::accumulate_rope_distance(context_, RopeOperands(q, k, table, first_position), rotated, errors);
  }

 private:
  const Context& context_;
  Solver solver_;
  DType compute_type_;
};

}  // namespace

std::unique_ptr<CalibrationOps> make_calibration_ops(const Context& context, DType compute_type) {
  return std::make_unique<CudaCalibrationOps>(context, compute_type);
}

}  // namespace kvs::cuda
