#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"

namespace kvs {
namespace cuda {
namespace {

struct RopeShape {
  std::size_t heads, tokens, head_dim, half, first_position;
};

/// One thread a chunk of a token. `mask`, if not null, is [head, half].
__global__ void rotate_chunks(float* x, std::size_t count, RopeShape shape, const float* cosine, const float* sine,
                              RopeTurn turn, const std::uint8_t* mask) {
  const std::size_t i = global_index();
  if (i >= count) return;
  const std::size_t chunk = i % shape.half, row = i / shape.half;
  const std::size_t token = row % shape.tokens, head = row / shape.tokens % shape.heads;
  if (mask != nullptr && mask[head * shape.half + chunk] == 0) return;
  const std::size_t at = (shape.first_position + token) * shape.half + chunk;
  const float c = cosine[at] * turn.cosine, s = sine[at] * turn.sine;
  float* const low = x + row * shape.head_dim + chunk;
  float* const high = low + shape.half;
  const float a = *low, b = *high;
  *low = a * c - b * s;
  *high = b * c + a * s;
}

}  // namespace
}  // namespace cuda

void CudaBackend::rope(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position,
                       RopeDirection direction, std::span<const std::uint8_t> chunks) {
  const auto [members, heads, tokens, head_dim] = x.shape();
  const std::size_t half = table.cosine.extent(1), count = members * heads * tokens * half;
  cuda::require(table.cosine.shape() == table.sine.shape() && 2 * half <= head_dim, "rope",
                "a table of at most head_dim / 2 frequencies");
  cuda::require(table.cosine.extent(0) >= first_position + tokens, "rope", "a table that reaches the last position");
  cuda::require(chunks.empty() || chunks.size() == heads * half, "rope", "chunks of [head, frequency]");
  if (count == 0) return;
  cuda::DeviceArray<std::uint8_t> mask;
  if (!chunks.empty()) mask = cuda::DeviceArray<std::uint8_t>(context_, chunks);
  cuda::launch_kernel("rotate_chunks", cuda::rotate_chunks, {cuda::blocks_for(count)}, context_.stream(), x.data(),
                      count, {heads, tokens, head_dim, half, first_position}, table.cosine.data(), table.sine.data(),
                      rope_turn(direction, table.factor), mask.data());
}

}  // namespace kvs
