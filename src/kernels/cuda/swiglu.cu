#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"

namespace kvs {
namespace cuda {
namespace {

template <class T>
__global__ void gate_values(const float* gate_up, std::size_t count, std::size_t columns, T* out) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const std::size_t at = i / columns * 2 * columns + i % columns;
  const float gate = gate_up[at];
  store(out + i, gate / (1.0F + expf(-gate)) * gate_up[at + columns]);
}

template <class T>
void launch(const float* gate_up, Operand out, cudaStream_t stream) {
  const std::size_t count = out.rows * out.columns;
  gate_values<<<blocks_for(count), kThreads, 0, stream>>>(gate_up, count, out.columns, static_cast<T*>(out.data));
  check_launch("gate_values");
}

}  // namespace
}  // namespace cuda

void CudaBackend::gate(BackendView<const float, 2> gate_up, Activation activation, Operand out) {
  cuda::require(gate_up.extent(0) == out.rows && gate_up.extent(1) == 2 * out.columns, "gate",
                "gate_up of [out.rows, 2 out.columns]");
  if (activation != Activation::kSilu) cuda::unsupported("GELU");
  if (gate_up.empty()) return;
  if (type_ == DType::kBF16)
    cuda::launch<__nv_bfloat16>(gate_up.data(), out, context_.stream());
  else
    cuda::launch<float>(gate_up.data(), out, context_.stream());
}

}  // namespace kvs
