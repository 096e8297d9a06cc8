// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/calibration_ops.h"

namespace kvs::inline calibrate {

/// Computes the lower Cholesky factor of a symmetric, positive semidefinite matrix, whose diagonal is first increased
/// by `damping` of its mean, so that singular matrices work; for zeros, a multiple of the identity. In place, [n, n].
void damped_cholesky(CalibrationOps& ops, TensorView<double, 2> matrix, double damping);

/// Returns the lower Cholesky factor L of E[xxᵀ] + ε·I with ε = 1e-4 of the mean diagonal (this project's choice, so
/// that fewer tokens than d_model suffice).
/// @param second_moment  Σ x xᵀ [d_model, d_model] over `tokens` inputs x of k_proj and v_proj, possibly weighted
/// @return [d_model, d_model]
std::vector<double> whitening_factor(CalibrationOps& ops, std::span<const double> second_moment, std::size_t tokens);

}  // namespace kvs::inline calibrate
