// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "kernels/cuda/make_cuda_backend.h"

namespace kvs::inline kernels {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kEnvironment, "device cuda",
              "this program was built without CUDA; use the device cpu or build the preset \"cuda\"");
}

}  // namespace

bool cuda_available() noexcept { return false; }
std::unique_ptr<Backend> make_cuda_backend(DType) { refuse(); }
std::string cuda_attention_note(const Backend&) { refuse(); }
CudaProducts cuda_products(const Backend&) { refuse(); }
std::vector<CudaGemmTrial> cuda_gemm_trials(Backend&, Operand, const Weight&, DType) { refuse(); }
std::unique_ptr<DeviceClock> make_cuda_clock(const Backend&) { refuse(); }
std::unique_ptr<CalibrationOps> make_cuda_calibration_ops(Backend&) { refuse(); }

}  // namespace kvs::inline kernels
