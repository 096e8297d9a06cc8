// SPDX-License-Identifier: Apache-2.0
// Device names are in their own file, so that a program that only stores caches does not link the devices.
#include <string>

#include "core/error.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/make_cuda_backend.h"

namespace kvs::inline kernels {

std::unique_ptr<Backend> make_backend(std::string_view device, DType compute_type, int threads) {
  if (threads < 0)
    throw Error(ErrorCode::kUsage, "threads", "found " + std::to_string(threads) + ", expected 0 or more");
  if (device == "cuda" || (device == "auto" && cuda_available())) return make_cuda_backend(compute_type);
  if (device == "cpu" || device == "auto") return std::make_unique<CpuBackend>(compute_type, threads);
  throw Error(ErrorCode::kUsage, "device", "found \"" + std::string(device) + "\", expected cpu, cuda or auto");
}

}  // namespace kvs::inline kernels
