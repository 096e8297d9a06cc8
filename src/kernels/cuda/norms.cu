// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_row.cuh"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/values.cuh"

namespace kvs::cuda {
namespace {

/// One block per row. Writes the normalised row to out, or adds it with kAdd.
template <int N, bool kAdd, class T>
__global__ void rms_norm_rows(const float* x, const float* gain, std::size_t columns, float epsilon, T* out) {
  __shared__ float scratch[kThreads / 32];
  const std::size_t first = std::size_t{blockIdx.x} * columns;
  const BlockRow<N> row(x + first, columns);
  const float squares = block_sum(row.sum([](float value) { return value * value; }), scratch);
  const float inverse = 1.0F / sqrtf(squares / static_cast<float>(columns) + epsilon);
  row.each([&](std::size_t column, const Values<N>& values) {
    const Values<N> scale = load<N>(gain + column);
    Values<N> result{};
    if constexpr (kAdd) result = load<N>(out + first + column);
#pragma unroll
    for (int n = 0; n < N; ++n) result.at[n] += values.at[n] * inverse * scale.at[n];
    store(out + first + column, result);
  });
}

/// One block per row. The variance is computed around the mean.
template <int N, class T>
__global__ void layer_norm_rows(const float* x, const float* gain, const float* bias, std::size_t columns,
                                float epsilon, T* out) {
  __shared__ double scratch[kThreads / 32];
  const std::size_t first = std::size_t{blockIdx.x} * columns;
  const BlockRow<N> row(x + first, columns);
  const auto mean_of = [&](float sum) {
    return block_sum(static_cast<double>(sum), scratch) / static_cast<double>(columns);
  };
  const auto mean = static_cast<float>(mean_of(row.sum([](float value) { return value; })));
  const double variance = mean_of(row.sum([mean](float value) { return (value - mean) * (value - mean); }));
  const auto inverse = static_cast<float>(1.0 / sqrt(variance + static_cast<double>(epsilon)));
  row.each([&](std::size_t column, const Values<N>& values) {
    const Values<N> scale = load<N>(gain + column), shift = load<N>(bias + column);
    Values<N> result;
#pragma unroll
    for (int n = 0; n < N; ++n) result.at[n] = (values.at[n] - mean) * inverse * scale.at[n] + shift.at[n];
    store(out + first + column, result);
  });
}

/// `together` heads of a token share one mean.
struct HeadGroups {
  std::size_t together, tokens, head_dim;
};

/// One warp per token of a group of heads. x: [group, head, token, head_dim]; blockIdx.y is the group.
template <int N>
__global__ void norm_head_groups(float* x, const float* gain, HeadGroups shape, float epsilon) {
  const std::size_t token = global_index() / 32, lane = threadIdx.x % 32;
  if (token >= shape.tokens) return;  // a whole warp returns
  float* const first = x + (blockIdx.y * shape.together * shape.tokens + token) * shape.head_dim;
  const auto each = [&](auto visit) {
    for (std::size_t head = 0; head < shape.together; ++head)
      for (std::size_t channel = lane * N; channel < shape.head_dim; channel += 32 * N)
        visit(first + head * shape.tokens * shape.head_dim + channel, head * shape.head_dim + channel);
  };
  float squares = 0;
  each([&](const float* from, std::size_t) {
    const Values<N> values = load<N>(from);
#pragma unroll
    for (int n = 0; n < N; ++n) squares += values.at[n] * values.at[n];
  });
  const auto count = static_cast<float>(shape.together * shape.head_dim);
  const float inverse = 1.0F / sqrtf(warp_sum(squares) / count + epsilon);
  each([&](float* place, std::size_t channel) {
    Values<N> values = load<N>(place);
    const Values<N> scale = load<N>(gain + channel);
#pragma unroll
    for (int n = 0; n < N; ++n) values.at[n] *= inverse * scale.at[n];
    store(place, values);
  });
}

unsigned row_blocks(std::size_t rows, const char* operation) {
  require(rows < 0x80000000, operation, "fewer than 2^31 rows");
  return static_cast<unsigned>(rows);
}

template <bool kAdd, class T>
void launch_rms_norm(BackendView<const float, 2> x, const float* gain, float epsilon, T* out, cudaStream_t stream) {
  if (x.empty()) return;
  with_values<4>(
      x.extent(1),
      [&](auto n) {
        launch_kernel("rms_norm_rows", rms_norm_rows<n(), kAdd, T>, {row_blocks(x.extent(0), "rms_norm")}, stream,
                      x.data(), gain, x.extent(1), epsilon, out);
      },
      x.data(), gain, out);
}

template <class T>
void launch_layer_norm(BackendView<const float, 2> x, const float* gain, const float* bias, float epsilon, T* out,
                       cudaStream_t stream) {
  if (x.empty()) return;
  with_values<4>(
      x.extent(1),
      [&](auto n) {
        launch_kernel("layer_norm_rows", layer_norm_rows<n(), T>, {row_blocks(x.extent(0), "layer_norm")}, stream,
                      x.data(), gain, bias, x.extent(1), epsilon, out);
      },
      x.data(), gain, bias, out);
}

}  // namespace
}  // namespace kvs::cuda

namespace kvs::inline kernels {

void CudaBackend::rms_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                           Operand out) {
  cuda::require(gain.extent(0) == x.extent(1), "rms_norm", "one gain per column");
  cuda::require(out.rows == x.extent(0) && out.columns == x.extent(1), "rms_norm", "out of x's shape");
  cuda::with_type(type_, [&](auto zero) {
    cuda::launch_rms_norm<false>(x, gain.data(), epsilon, static_cast<decltype(zero)*>(out.data), context_.stream());
  });
}

void CudaBackend::rms_norm_add(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                               BackendView<float, 2> sum) {
  cuda::require(gain.extent(0) == x.extent(1), "rms_norm_add", "one gain per column");
  cuda::require(sum.shape() == x.shape(), "rms_norm_add", "a sum of x's shape");
  cuda::launch_rms_norm<true>(x, gain.data(), epsilon, sum.data(), context_.stream());
}

void CudaBackend::layer_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain,
                             BackendView<const float, 1> bias, float epsilon, Operand out) {
  cuda::require(gain.extent(0) == x.extent(1) && bias.extent(0) == x.extent(1), "layer_norm",
                "one gain and one bias per column");
  cuda::require(out.rows == x.extent(0) && out.columns == x.extent(1), "layer_norm", "out of x's shape");
  cuda::with_type(type_, [&](auto zero) {
    cuda::launch_layer_norm(x, gain.data(), bias.data(), epsilon, static_cast<decltype(zero)*>(out.data),
                            context_.stream());
  });
}

void CudaBackend::norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain, float epsilon) {
  const std::size_t heads = x.extent(1), tokens = x.extent(2), head_dim = x.extent(3);
  cuda::require(gain.extent(0) == head_dim || gain.extent(0) == heads * head_dim, "norm_heads",
                "a gain of [head_dim] or [head · head_dim]");
  if (x.empty()) return;
  const std::size_t together = gain.extent(0) / head_dim, groups = x.extent(0) * heads / together;
  const dim3 blocks(cuda::blocks_for(tokens * 32), cuda::grid_rows(groups, "norm_heads"));
  cuda::with_values<4>(
      head_dim,
      [&](auto n) {
        cuda::launch_kernel("norm_head_groups", cuda::norm_head_groups<n()>, {blocks}, context_.stream(), x.data(),
                            gain.data(), cuda::HeadGroups{together, tokens, head_dim}, epsilon);
      },
      x.data(), gain.data());
}

}  // namespace kvs::inline kernels
