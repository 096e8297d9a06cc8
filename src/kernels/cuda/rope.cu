// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rotate.cuh"
#include "kernels/cuda/values.cuh"

namespace kvs::cuda {
namespace {

struct RopeShape {
  std::size_t heads, tokens, head_dim, half, first_position;
};

/// One thread per N chunks of a token; blockIdx.y is the head of a member. `mask`, if not null, is [head, half].
template <int N>
__global__ void rotate_chunks(float* x, RopeShape shape, const float* cosine, const float* sine, RopeTurn turn,
                              const std::uint8_t* mask) {
  const auto index = static_cast<unsigned>(global_index()), shares = static_cast<unsigned>(shape.half / N);
  const std::size_t token = index / shares, chunk = std::size_t{index % shares} * N;
  if (token >= shape.tokens) return;
  const std::size_t at = (shape.first_position + token) * shape.half + chunk;
  const Values<N> cosines = load<N>(cosine + at), sines = load<N>(sine + at);
  float* const place = x + (blockIdx.y * shape.tokens + token) * shape.head_dim + chunk;
  Values<N> low = load<N>(place), high = load<N>(place + shape.half);
#pragma unroll
  for (int n = 0; n < N; ++n) {
    if (mask != nullptr && mask[blockIdx.y % shape.heads * shape.half + chunk + n] == 0) continue;
    const float a = low.at[n], b = high.at[n], c = cosines.at[n] * turn.cosine, s = sines.at[n] * turn.sine;
    low.at[n] = rotated(a, b, c, -s);
    high.at[n] = rotated(b, a, c, s);
  }
  store(place, low);
  store(place + shape.half, high);
}

}  // namespace
}  // namespace kvs::cuda

namespace kvs::inline kernels {

void CudaBackend::rope(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position,
                       RopeDirection direction, std::span<const std::uint8_t> chunks) {
  const auto [members, heads, tokens, head_dim] = x.shape();
  const std::size_t half = cuda::checked_chunks(table, head_dim, first_position + tokens);
  cuda::require(chunks.empty() || chunks.size() == heads * half, "rope", "chunks of [head, frequency]");
  if (x.empty() || half == 0) return;
  cuda::require(tokens * half < 0x80000000, "rope", "fewer than 2^31 chunks of a head");
  cuda::DeviceArray<std::uint8_t> mask;
  if (!chunks.empty()) mask = cuda::DeviceArray<std::uint8_t>(context_, chunks);
  const cuda::RopeShape shape{heads, tokens, head_dim, half, first_position};
  const RopeTurn turn = rope_turn(direction, table.factor);
  cuda::with_values<4>(
      half | head_dim,  // a multiple of 4 if both values are
      [&](auto n) {
        const dim3 blocks(cuda::blocks_for(tokens * half / n()), cuda::grid_rows(members * heads, "rope"));
        cuda::launch_kernel("rotate_chunks", cuda::rotate_chunks<n()>, {blocks}, context_.stream(), x.data(), shape,
                            table.cosine.data(), table.sine.data(), turn, mask.data());
      },
      x.data(), table.cosine.data(), table.sine.data());
}

}  // namespace kvs::inline kernels
