#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"

namespace kvs {

// Operations of architectures that so far run on the CPU only.

void CudaBackend::rms_norm_add(BackendView<const float, 2>, BackendView<const float, 1>, float, BackendView<float, 2>) {
  cuda::unsupported("norms after its blocks");
}

void CudaBackend::layer_norm(BackendView<const float, 2>, BackendView<const float, 1>, BackendView<const float, 1>,
                             float, Operand) {
  cuda::unsupported("LayerNorm");
}

void CudaBackend::norm_heads(BackendView<float, 4>, BackendView<const float, 1>, float) {
  cuda::unsupported("QK-norm");
}

void CudaBackend::activate(BackendView<const float, 2>, Activation, Operand) {
  cuda::unsupported("an ungated feed-forward block");
}

}  // namespace kvs
