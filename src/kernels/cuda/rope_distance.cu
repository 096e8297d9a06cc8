// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/rope_sums.h"

namespace kvs::cuda {
namespace {

constexpr int kWarps = 8;             // one query per warp
constexpr int kMaxChunksPerLane = 4;  // for a head_dim of up to 256

/// partial[block, c] = Σ over the block's queries i and keys j ≤ i of |Σ_{c' not in E, c' ≠ c} δ_c'(i,j)|, 0 for c in
/// E. The lanes of a warp divide the chunks of one query and iterate over its keys together. a, b: [token, component,
/// chunk]; rotated: [chunk].
__global__ void __launch_bounds__(32 * kWarps)
    distance_rows(const double* a, const double* b, const std::uint8_t* rotated, std::size_t tokens, std::size_t half,
                  double* partial) {
  __shared__ double sums[kWarps][32 * kMaxChunksPerLane];
  const std::size_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, stride = kComponents * half;
  const std::size_t query = (std::size_t{gridDim.x} - 1 - blockIdx.x) * kWarps + warp;  // the longest rows start first
  double own[kMaxChunksPerLane][kComponents] = {}, sum[kMaxChunksPerLane] = {};
  bool active[kMaxChunksPerLane] = {};
#pragma unroll
  for (int n = 0; n < kMaxChunksPerLane; ++n) {
    const std::size_t chunk = lane + 32 * n;
    active[n] = query < tokens && chunk < half && rotated[chunk] == 0;
    if (!active[n]) continue;
    for (std::size_t m = 0; m < kComponents; ++m) own[n][m] = a[query * stride + m * half + chunk];
  }
  for (std::size_t key = 0; key <= query && query < tokens; ++key) {
    double delta[kMaxChunksPerLane] = {}, left = 0;
#pragma unroll
    for (int n = 0; n < kMaxChunksPerLane; ++n) {
      if (!active[n]) continue;
      const double* const at = b + key * stride + lane + 32 * n;
      for (std::size_t m = 0; m < kComponents; ++m) delta[n] += own[n][m] * at[m * half];
      left += delta[n];
    }
    left = warp_sum(left);
#pragma unroll
    for (int n = 0; n < kMaxChunksPerLane; ++n) sum[n] += fabs(left - delta[n]);
  }
#pragma unroll
  for (int n = 0; n < kMaxChunksPerLane; ++n) sums[warp][lane + 32 * n] = active[n] ? sum[n] : 0.0;
  __syncthreads();
  for (std::size_t chunk = threadIdx.x; chunk < half; chunk += 32 * kWarps) {
    double total = 0;
    for (int row = 0; row < kWarps; ++row) total += sums[row][chunk];
    partial[std::size_t{blockIdx.x} * half + chunk] = total;
  }
}

__global__ void sum_partials(const double* partial, std::size_t half, std::size_t blocks, double* errors) {
  const std::size_t chunk = global_index();
  if (chunk >= half) return;
  double sum = 0;
  for (std::size_t block = 0; block < blocks; ++block) sum += partial[block * half + chunk];
  errors[chunk] = sum;
}

}  // namespace

void accumulate_rope_distance(const Context& context, const RopeOperands& in, TensorView<const std::uint8_t, 2> rotated,
                              TensorView<double, 2> errors) {
  const std::array shape{in.query_heads, in.half};
  if (rotated.shape() != shape || errors.shape() != shape)
    throw Error(ErrorCode::kInternal, "rope distance", "the sums' shape is not [query_head, chunk]");
  if (in.half > 32 * kMaxChunksPerLane)
    throw Error(ErrorCode::kUnsupported, "device cuda",
                "found a head_dim of " + std::to_string(2 * in.half) + ", expected at most 256");
  if (in.tokens == 0 || in.half == 0) return;
  const std::size_t blocks = (in.tokens + kWarps - 1) / kWarps;
  const DeviceArray<std::uint8_t> mask(context, rotated.span());
  const DeviceArray<double> a(context, in.tokens * kComponents * in.half), b(context, a.size()),
      partial(context, blocks * in.half), result(context, errors.size());
  for (std::size_t head = 0; head < in.query_heads; ++head) {
    if (head % in.group == 0) fill_components(context, in, RopeSide::kKey, head / in.group, b.data());
    fill_components(context, in, RopeSide::kQuery, head, a.data());
    launch_kernel("distance_rows", distance_rows, {static_cast<unsigned>(blocks), 32 * kWarps}, context.stream(),
                  a.data(), b.data(), mask.data() + head * in.half, in.tokens, in.half, partial.data());
    launch_kernel("sum_partials", sum_partials, {blocks_for(in.half)}, context.stream(), partial.data(), in.half,
                  blocks, result.data() + head * in.half);
  }
  const std::vector<double> added = result.to_host();
  for (std::size_t i = 0; i < added.size(); ++i) errors.data()[i] += added[i];
}

}  // namespace kvs::cuda
