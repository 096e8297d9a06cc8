// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/dtype.h"
#include "kernels/calibration_ops.h"
#include "kernels/cuda/context.h"

namespace kvs::cuda {

/// Makes CalibrationOps with cuBLAS and cuSOLVER in float64. Not thread-safe. `context` must outlive the result.
/// @param compute_type  element type of Operands, kF32 or kBF16
std::unique_ptr<CalibrationOps> make_calibration_ops(const Context& context, DType compute_type);

}  // namespace kvs::cuda
