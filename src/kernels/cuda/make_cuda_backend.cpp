// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/make_cuda_backend.h"

#include "kernels/cuda/calibration_ops.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/spectral_ops.h"
#include "kernels/cuda/stream_clock.h"

namespace kvs::inline kernels {
namespace {

const CudaBackend& checked(const Backend& backend) {
  const auto* cuda = dynamic_cast<const CudaBackend*>(&backend);
  if (cuda == nullptr) throw Error(ErrorCode::kInternal, "make_cuda_*", "expected a backend of the device cuda");
  return *cuda;
}

}  // namespace

bool cuda_available() noexcept {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

std::unique_ptr<Backend> make_cuda_backend(DType compute_type) { return std::make_unique<CudaBackend>(compute_type); }

std::string cuda_attention_note(const Backend& backend) { return checked(backend).attention_note(); }

CudaProducts cuda_products(const Backend& backend) { return checked(backend).products(); }

std::vector<CudaGemmTrial> cuda_gemm_trials(Backend& backend, Operand x, const Weight& weight, DType y_type) {
  (void)checked(backend);
  return dynamic_cast<CudaBackend&>(backend).gemm_trials(x, weight, y_type);
}

std::unique_ptr<DeviceClock> make_cuda_clock(const Backend& backend) {
  return std::make_unique<cuda::StreamClock>(checked(backend).context());
}

std::unique_ptr<SpectralOps> CudaBackend::make_spectral_ops() { return cuda::make_spectral_ops(context_); }

std::unique_ptr<CalibrationOps> make_cuda_calibration_ops(Backend& backend) {
  return cuda::make_calibration_ops(checked(backend).context(), backend.compute_type());
}

}  // namespace kvs::inline kernels
