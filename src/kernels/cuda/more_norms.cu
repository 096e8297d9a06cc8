#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"

namespace kvs {
namespace cuda {
namespace {

/// One block a row.
__global__ void rms_norm_add_rows(const float* x, const float* gain, std::size_t columns, float epsilon, float* sum) {
  __shared__ float scratch[kThreads / 32];
  const std::size_t at = std::size_t{blockIdx.x} * columns;
  float squares = 0;
  for (std::size_t i = threadIdx.x; i < columns; i += kThreads) squares += x[at + i] * x[at + i];
  const float mean = block_sum(squares, scratch) / static_cast<float>(columns);
  const float inverse = 1.0F / sqrtf(mean + epsilon);
  for (std::size_t i = threadIdx.x; i < columns; i += kThreads) sum[at + i] += x[at + i] * inverse * gain[i];
}

/// One block a row, read three times, twice of them from cache: the variance is taken around the mean.
template <class T>
__global__ void layer_norm_rows(const float* x, const float* gain, const float* bias, std::size_t columns,
                                float epsilon, T* out) {
  __shared__ double scratch[kThreads / 32];
  const std::size_t at = std::size_t{blockIdx.x} * columns;
  float sum = 0, squares = 0;
  for (std::size_t i = threadIdx.x; i < columns; i += kThreads) sum += x[at + i];
  const auto mean = static_cast<float>(block_sum(static_cast<double>(sum), scratch) / static_cast<double>(columns));
  for (std::size_t i = threadIdx.x; i < columns; i += kThreads) squares += (x[at + i] - mean) * (x[at + i] - mean);
  const double variance = block_sum(static_cast<double>(squares), scratch) / static_cast<double>(columns);
  const auto inverse = static_cast<float>(1.0 / sqrt(variance + static_cast<double>(epsilon)));
  for (std::size_t i = threadIdx.x; i < columns; i += kThreads)
    store(out + at + i, (x[at + i] - mean) * inverse * gain[i] + bias[i]);
}

/// What shares one mean: `together` heads of a token, `stride` values apart.
struct HeadGroups {
  std::size_t count, together, tokens, head_dim;
};

/// One warp a group of heads of a token. x: [member and group, head, token, head_dim].
__global__ void norm_head_groups(float* x, const float* gain, HeadGroups shape, float epsilon) {
  const std::size_t group = global_index() / 32, lane = threadIdx.x % 32;
  if (group >= shape.count) return;  // a whole warp
  const std::size_t stride = shape.tokens * shape.head_dim, values = shape.together * shape.head_dim;
  float* const first = x + group / shape.tokens * shape.together * stride + group % shape.tokens * shape.head_dim;
  const auto place = [&](std::size_t i) { return first + i / shape.head_dim * stride + i % shape.head_dim; };
  float squares = 0;
  for (std::size_t i = lane; i < values; i += 32) squares += *place(i) * *place(i);
  const float inverse = 1.0F / sqrtf(warp_sum(squares) / static_cast<float>(values) + epsilon);
  for (std::size_t i = lane; i < values; i += 32) *place(i) *= inverse * gain[i];
}

unsigned row_blocks(std::size_t rows, const char* operation) {
  require(rows < 0x80000000, operation, "fewer than 2^31 rows");
  return static_cast<unsigned>(rows);
}

}  // namespace
}  // namespace cuda

void CudaBackend::rms_norm_add(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                               BackendView<float, 2> sum) {
  cuda::require(gain.extent(0) == x.extent(1), "rms_norm_add", "one gain per column");
  cuda::require(sum.shape() == x.shape(), "rms_norm_add", "a sum of x's shape");
  if (x.empty()) return;
  cuda::launch_kernel("rms_norm_add_rows", cuda::rms_norm_add_rows, {cuda::row_blocks(x.extent(0), "rms_norm_add")},
                      context_.stream(), x.data(), gain.data(), x.extent(1), epsilon, sum.data());
}

void CudaBackend::layer_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain,
                             BackendView<const float, 1> bias, float epsilon, Operand out) {
  cuda::require(gain.extent(0) == x.extent(1) && bias.extent(0) == x.extent(1), "layer_norm",
                "one gain and one bias per column");
  cuda::require(out.rows == x.extent(0) && out.columns == x.extent(1), "layer_norm", "out of x's shape");
  if (x.empty()) return;
  const auto launch = [&]<class T>(T* to) {
    cuda::launch_kernel("layer_norm_rows", cuda::layer_norm_rows<T>, {cuda::row_blocks(x.extent(0), "layer_norm")},
                        context_.stream(), x.data(), gain.data(), bias.data(), x.extent(1), epsilon, to);
  };
  if (type_ == DType::kBF16)
    launch(static_cast<__nv_bfloat16*>(out.data));
  else
    launch(static_cast<float*>(out.data));
}

void CudaBackend::norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain, float epsilon) {
  const auto [members, heads, tokens, head_dim] = x.shape();
  cuda::require(gain.extent(0) == head_dim || gain.extent(0) == heads * head_dim, "norm_heads",
                "a gain of [head_dim] or [head · head_dim]");
  if (x.empty()) return;
  const std::size_t together = gain.extent(0) / head_dim, groups = members * heads / together * tokens;
  cuda::launch_kernel("norm_head_groups", cuda::norm_head_groups, {cuda::blocks_for(groups * 32)}, context_.stream(),
                      x.data(), gain.data(), {groups, together, tokens, head_dim}, epsilon);
}

}  // namespace kvs
