#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"

namespace kvs {
namespace cuda {
namespace {

/// One block a row; the row is read twice, the second time from cache.
template <class T>
__global__ void rms_norm_rows(const float* x, const float* gain, std::size_t columns, float epsilon, T* out) {
  __shared__ float scratch[kThreads / 32];
  const std::size_t at = std::size_t{blockIdx.x} * columns;
  float sum = 0;
  for (std::size_t i = threadIdx.x; i < columns; i += kThreads) sum += x[at + i] * x[at + i];
  const float mean = block_sum(sum, scratch) / static_cast<float>(columns);
  const float inverse = 1.0F / sqrtf(mean + epsilon);
  for (std::size_t i = threadIdx.x; i < columns; i += kThreads) store(out + at + i, x[at + i] * inverse * gain[i]);
}

template <class T>
void launch(BackendView<const float, 2> x, const float* gain, float epsilon, void* out, cudaStream_t stream) {
  const auto rows = static_cast<unsigned>(x.extent(0));
  launch_kernel("rms_norm_rows", rms_norm_rows<T>, {rows}, stream, x.data(), gain, x.extent(1), epsilon,
                static_cast<T*>(out));
}

}  // namespace
}  // namespace cuda

void CudaBackend::rms_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                           Operand out) {
  cuda::require(gain.extent(0) == x.extent(1), "rms_norm", "one gain per column");
  cuda::require(out.rows == x.extent(0) && out.columns == x.extent(1), "rms_norm", "out of x's shape");
  cuda::require(out.rows < 0x80000000, "rms_norm", "fewer than 2^31 rows");
  if (x.empty()) return;
  if (type_ == DType::kBF16)
    cuda::launch<__nv_bfloat16>(x, gain.data(), epsilon, out.data, context_.stream());
  else
    cuda::launch<float>(x, gain.data(), epsilon, out.data, context_.stream());
}

}  // namespace kvs
