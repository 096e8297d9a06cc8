// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/values.cuh"
#include "kernels/cuda/weight.h"

namespace kvs::cuda {
namespace {

// Each function returns x times its passing share. It saturates to 0 and x, and keeps NaN.
struct Silu {
  static __device__ float of(float x) { return x / (1.0F + expf(-x)); }
};
struct GeluTanh {
  // ½ (1 + tanh u) is the logistic function of 2u. This form keeps its digits where tanh u is near −1.
  static __device__ float of(float x) {
    constexpr float kTwice = 1.5957691216F, kCubic = 0.044715F;  // 2 √(2/π)
    return x / (1.0F + expf(-kTwice * (x + kCubic * x * x * x)));
  }
};
struct GeluErf {
  static __device__ float of(float x) { return x * (0.5F * erfcf(x * -0.70710678118F)); }
};
struct GeluSigmoid {
  static __device__ float of(float x) { return x / (1.0F + expf(-1.702F * x)); }
};
struct Relu {
  static __device__ float of(float x) { return x < 0.0F ? 0.0F : x; }
};
struct ReluSquared {
  static __device__ float of(float x) { return x < 0.0F ? 0.0F : x * x; }
};

/// A thread handles N channels of every gridDim.y-th row. x: [row, stride]. If stride is twice the columns, the second
/// half of a row is the multiplier. `bias`, if not null, is [stride].
template <class Function, int N, class T>
__global__ void activate_rows(const T* x, const float* bias, std::size_t rows, std::size_t columns, std::size_t stride,
                              T* out) {
  const std::size_t channel = global_index() * N;
  if (channel >= columns) return;
  const auto biased = [&](std::size_t row, std::size_t at) {
    Values<N> values = load<N>(x + row * stride + at);
    if (bias == nullptr) return values;
    const Values<N> shift = load<N>(bias + at);
#pragma unroll
    for (int n = 0; n < N; ++n) values.at[n] += shift.at[n];
    return values;
  };
  for (std::size_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const Values<N> gate = biased(row, channel);
    Values<N> factor;
    if (stride != columns) factor = biased(row, columns + channel);
    Values<N> result;
#pragma unroll
    for (int n = 0; n < N; ++n) result.at[n] = Function::of(gate.at[n]) * (stride != columns ? factor.at[n] : 1.0F);
    store(out + row * columns + channel, result);
  }
}

template <class Function, class T>
void launch(const T* x, const float* bias, std::size_t stride, Operand out, cudaStream_t stream) {
  auto* to = static_cast<T*>(out.data);
  const auto rows = static_cast<unsigned>(std::min<std::size_t>(out.rows, 0xffff));
  with_values<16 / sizeof(T)>(
      out.columns,
      [&](auto n) {
        launch_kernel("activate_rows", activate_rows<Function, n(), T>, {dim3(blocks_for(out.columns / n()), rows)},
                      stream, x, bias, out.rows, out.columns, stride, to);
      },
      x, bias, to);
}

template <class T>
void activate(const T* x, const float* bias, std::size_t stride, Activation activation, Operand out,
              cudaStream_t stream) {
  switch (activation) {
    case Activation::kSilu:
      return launch<Silu>(x, bias, stride, out, stream);
    case Activation::kGeluTanh:
      return launch<GeluTanh>(x, bias, stride, out, stream);
    case Activation::kGeluErf:
      return launch<GeluErf>(x, bias, stride, out, stream);
    case Activation::kGeluSigmoid:
      return launch<GeluSigmoid>(x, bias, stride, out, stream);
    case Activation::kRelu:
      return launch<Relu>(x, bias, stride, out, stream);
    case Activation::kReluSquared:
      return launch<ReluSquared>(x, bias, stride, out, stream);
  }
}

}  // namespace
}  // namespace kvs::cuda

namespace kvs::inline kernels {

/// The product is stored in the compute type: in bf16 the activation reads, and the product writes, half the bytes. The
/// bias is added afterwards in f32, because cuBLASLt requires it in the product's type.
void CudaBackend::up_projection(Operand x, const Weight& weight, Activation activation, Operand out) {
  const cuda::CudaWeight& own = cuda::checked_weight(weight, x.columns, type_);
  cuda::require(out.rows == x.rows && (own.rows() == out.columns || own.rows() == 2 * out.columns), "up_projection",
                "out of x's rows and the weight's rows or half of them");
  if (out.rows == 0 || out.columns == 0) return;
  projected_.reserve(context_, x.rows * own.rows() * item_size(type_));
  gemm_.run({.x = x.data,
             .w = own.rows_from(0),
             .y = projected_.data(),
             .rows = x.rows,
             .columns = own.rows(),
             .inner = x.columns,
             .y_type = type_});
  cuda::with_type(type_, [&]<class T>(T) {
    cuda::activate(reinterpret_cast<const T*>(projected_.data()), own.bias_from(0), own.rows(), activation, out,
                   context_.stream());
  });
}

}  // namespace kvs::inline kernels
