// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "core/tensor_view.h"
#include "kernels/backend.h"
#include "kernels/calibration_ops.h"

namespace kvs::cpu {

/// See CalibrationOps::svd.
SingularValues svd(TensorView<const double, 2> matrix, std::size_t rank);

/// Like svd(), for any size, through the smaller Gram matrix (gram_svd.cpp).
SingularValues gram_svd(TensorView<const double, 2> matrix, std::size_t rank);

/// Returns the eigenvalues of a symmetric matrix and the wanted eigenvectors, or no vectors if `wanted` is empty.
/// @param lower  its lower triangle in column-major order, overwritten
Eigenvectors leading_eigenvectors(std::span<double> lower, std::size_t n, const WantedVectors& wanted);
/// See CalibrationOps::eigenvectors.
Eigenvectors eigenvectors(TensorView<double, 2> matrix, const WantedVectors& wanted);

/// See CalibrationOps::cholesky.
void cholesky(TensorView<double, 2> matrix);

/// See CalibrationOps::multiply_lower.
void multiply_lower(TensorView<double, 2> x, TensorView<const double, 2> lower, Triangular how);

/// See CalibrationOps::accumulate_second_moment. `type` is the element type of x: kF32 or kBF16.
void accumulate_second_moment(Operand x, DType type, TensorView<double, 2> sum);

}  // namespace kvs::cpu
