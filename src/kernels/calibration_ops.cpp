// SPDX-License-Identifier: Apache-2.0
#include "kernels/calibration_ops.h"

#include <string>

#include "core/error.h"
#include "kernels/cpu/calibration_ops.h"
#include "kernels/cuda/make_cuda_backend.h"

namespace kvs::inline kernels {

std::unique_ptr<CalibrationOps> make_calibration_ops(Backend& backend) {
  if (backend.device() == "cpu") return make_cpu_calibration_ops(backend.compute_type());
  if (backend.device() == "cuda") return make_cuda_calibration_ops(backend);
  throw Error(ErrorCode::kUnsupported, "calibration operations",
              "found device " + std::string(backend.device()) + ", expected cpu or cuda");
}

}  // namespace kvs::inline kernels
