#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"

namespace kvs {
namespace cuda {
namespace {

// x times the share of it that passes. Each saturates to 0 and x, and keeps NaN.
struct Silu {
  static __device__ float of(float x) { return x / (1.0F + expf(-x)); }
};
struct GeluTanh {
  // ½ (1 + tanh u) is the logistic function of 2u, which loses no digits where tanh u is close to −1.
  static __device__ float of(float x) {
    constexpr float kTwice = 1.5957691216F, kCubic = 0.044715F;  // 2 √(2/π)
    return x / (1.0F + expf(-kTwice * (x + kCubic * x * x * x)));
  }
};
struct GeluErf {
  static __device__ float of(float x) { return x * (0.5F * erfcf(x * -0.70710678118F)); }
};

/// One thread a result. x: [row, stride]; where stride is twice the columns the second half of a row multiplies.
template <class Function, class T>
__global__ void activate_values(const float* x, std::size_t count, std::size_t columns, std::size_t stride, T* out) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const std::size_t at = i / columns * stride + i % columns;
  const float factor = stride == columns ? 1.0F : x[at + columns];
  store(out + i, Function::of(x[at]) * factor);
}

template <class Function, class T>
void launch_as(BackendView<const float, 2> x, Operand out, cudaStream_t stream) {
  const std::size_t count = out.rows * out.columns;
  if (count == 0) return;
  launch_kernel("activate_values", activate_values<Function, T>, {blocks_for(count)}, stream, x.data(), count,
                out.columns, x.extent(1), static_cast<T*>(out.data));
}

template <class Function>
void launch(BackendView<const float, 2> x, Operand out, DType type, cudaStream_t stream) {
  if (type == DType::kBF16) return launch_as<Function, __nv_bfloat16>(x, out, stream);
  launch_as<Function, float>(x, out, stream);
}

void run(BackendView<const float, 2> x, Activation activation, Operand out, DType type, cudaStream_t stream) {
  switch (activation) {
    case Activation::kSilu:
      return launch<Silu>(x, out, type, stream);
    case Activation::kGeluTanh:
      return launch<GeluTanh>(x, out, type, stream);
    case Activation::kGeluErf:
      return launch<GeluErf>(x, out, type, stream);
  }
}

}  // namespace
}  // namespace cuda

void CudaBackend::gate(BackendView<const float, 2> gate_up, Activation activation, Operand out) {
  cuda::require(gate_up.extent(0) == out.rows && gate_up.extent(1) == 2 * out.columns, "gate",
                "gate_up of [out.rows, 2 out.columns]");
  cuda::run(gate_up, activation, out, type_, context_.stream());
}

void CudaBackend::activate(BackendView<const float, 2> x, Activation activation, Operand out) {
  cuda::require(x.extent(0) == out.rows && x.extent(1) == out.columns, "activate", "x of out's shape");
  cuda::run(x, activation, out, type_, context_.stream());
}

}  // namespace kvs
