// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/heads.h"

namespace kvs::cpu {
namespace {

/// Rotates chunks (a[c], b[c]) by the angle with the given cosine and sine, multiplied by `turn`.cosine and
/// `turn`.sine. If mask[c] is 0, the chunk is unchanged.
void rotate(float* a, float* b, const float* cosine, const float* sine, RopeTurn turn, const std::int32_t* mask,
            std::size_t chunks) {
#pragma omp simd
  for (std::size_t c = 0; c < chunks; ++c) {
    const float cos = cosine[c] * turn.cosine, s = sine[c] * turn.sine;
    const float rotated_a = a[c] * cos - b[c] * s, rotated_b = b[c] * cos + a[c] * s;
    a[c] = mask[c] != 0 ? rotated_a : a[c];
    b[c] = mask[c] != 0 ? rotated_b : b[c];
  }
}

}  // namespace

void rotate_heads(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position, RopeDirection direction,
                  std::span<const std::uint8_t> chunks, int threads) {
  const std::size_t heads = x.extent(1), tokens = x.extent(2), head_dim = x.extent(3);
  const std::size_t half = table.cosine.extent(1), rows = x.extent(0) * heads * tokens;
  require(table.cosine.shape() == table.sine.shape() && 2 * half <= head_dim, "rope",
          "a table of at most head_dim / 2 frequencies");
  require(table.cosine.extent(0) >= first_position + tokens, "rope", "a table that reaches the last position");
  require(chunks.empty() || chunks.size() == heads * half, "rope", "chunks of [head, frequency]");
  std::vector<std::int32_t> mask(heads * half, 1);
  for (std::size_t i = 0; i < chunks.size(); ++i) mask[i] = chunks[i];
  const RopeTurn turn = rope_turn(direction, table.factor);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t position = first_position + row % tokens, head = row / tokens % heads;
    float* chunk = x.data() + row * head_dim;
    rotate(chunk, chunk + half, table.cosine.data() + position * half, table.sine.data() + position * half, turn,
           mask.data() + head * half, half);
  }
}

}  // namespace kvs::cpu

namespace kvs::inline kernels {

void CpuBackend::rope(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position,
                      RopeDirection direction, std::span<const std::uint8_t> chunks) {
  cpu::rotate_heads(x, table, first_position, direction, chunks, threads_);
}

}  // namespace kvs::inline kernels
