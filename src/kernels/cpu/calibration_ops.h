// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/dtype.h"
#include "kernels/calibration_ops.h"

namespace kvs::inline kernels {

/// Makes the reference implementation: OpenBLAS and LAPACK in float64, and its own loops for the sums over pairs of
/// tokens. All operands are host memory. Thread-safe.
/// @param compute_type  element type of Operands, kF32 or kBF16
std::unique_ptr<CalibrationOps> make_cpu_calibration_ops(DType compute_type);

}  // namespace kvs::inline kernels
