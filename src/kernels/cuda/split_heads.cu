// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rotate.cuh"
#include "kernels/cuda/split_heads.h"
#include "kernels/cuda/values.cuh"

namespace kvs::cuda {
namespace {

/// A thread's rotation. Without a table it has 0 chunks.
struct SplitRotation {
  const float *cosine, *sine;  // of token 0
  std::size_t half;
};

/// Returns the target of head `head` of a row, counted over q, k and v.
template <class T>
__device__ T* target_of(const SplitTargets<T>& to, const SplitShape& shape, std::size_t head) {
  const std::size_t plane = shape.tokens * to.row, member = blockIdx.y;
  if (head < shape.query_heads) return to.q + (member * shape.query_heads + head) * plane;
  head -= shape.query_heads;
  if (head < shape.kv_heads) return to.k + (member * shape.kv_heads + head) * plane;
  return to.v + (member * shape.kv_heads + head - shape.kv_heads) * plane;
}

/// One block per token of a member, `lanes` threads per head. A thread keeps its channels, and thus their cosines and
/// sines, and handles several heads, kTogether at a time, so that several loads overlap.
template <int N, class T>
__global__ void split_rows(const float* __restrict__ qkv, SplitShape shape, SplitRotation rotation, unsigned lanes,
                           SplitTargets<T> to) {
  constexpr int kTogether = 4;
  const std::size_t token = blockIdx.x, heads = shape.query_heads + 2 * shape.kv_heads, half = rotation.half;
  const std::size_t first_head = threadIdx.x / lanes, head_step = kThreads / lanes;
  if (first_head >= head_step) return;  // threads left over if the lanes do not divide the block
  const float* const row = qkv + (blockIdx.y * shape.tokens + token) * heads * shape.head_dim;
  for (std::size_t channel = threadIdx.x % lanes * N; channel < to.row; channel += lanes * N) {
    const bool low = channel < half, turns = channel < 2 * half;
    const std::size_t partner = low ? channel + half : channel - half;
    const std::size_t heads_there = channel < shape.head_dim ? heads : 0;  // the other channels are zeros
    const std::size_t heads_turned = turns ? shape.query_heads + shape.kv_heads : 0;
    Values<N> cosines{}, sines{};
    if (turns) {
      cosines = load<N>(rotation.cosine + token * half + (low ? channel : partner));
      sines = load<N>(rotation.sine + token * half + (low ? channel : partner));
    }
    for (std::size_t first = first_head; first < heads; first += kTogether * head_step) {
      Values<N> values[kTogether] = {}, others[kTogether] = {};
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const std::size_t head = first + i * head_step;
        if (head < heads_there) values[i] = load<N>(row + head * shape.head_dim + channel);
        if (head < heads_turned) others[i] = load<N>(row + head * shape.head_dim + partner);
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const std::size_t head = first + i * head_step;
        if (head >= heads) continue;
        if (head < heads_turned) {
#pragma unroll
          for (int n = 0; n < N; ++n)
            values[i].at[n] =
                rotated(values[i].at[n], others[i].at[n], cosines.at[n], low ? -sines.at[n] : sines.at[n]);
        }
        store(target_of(to, shape, head) + token * to.row + channel, values[i]);
      }
    }
  }
}

}  // namespace

template <class T>
void split_heads(const Context& context, BackendView<const float, 2> qkv, const SplitShape& shape,
                 const RopeTable* table, std::size_t first_position, const SplitTargets<T>& to) {
  const auto& [members, query_heads, kv_heads, tokens, head_dim] = shape;
  require(qkv.extent(0) == members * tokens && qkv.extent(1) == (query_heads + 2 * kv_heads) * head_dim, "split_heads",
          "qkv of [member · token, (H + 2G) · head_dim]");
  require(tokens < 0x80000000, "split_heads", "fewer than 2^31 tokens");
  if (qkv.empty()) return;
  SplitRotation rotation{nullptr, nullptr, 0};
  if (table != nullptr) {
    const std::size_t half = checked_chunks(*table, head_dim, first_position + tokens);
    rotation = {table->cosine.data() + first_position * half, table->sine.data() + first_position * half, half};
  }
  const dim3 blocks(static_cast<unsigned>(tokens), grid_rows(members, "split_heads"));
  with_values<4>(
      rotation.half | head_dim | to.row,  // a multiple of 4 if all values are
      [&](auto n) {
        const auto lanes = static_cast<unsigned>(std::min<std::size_t>(to.row / n(), kThreads));
        launch_kernel("split_rows", split_rows<n(), T>, {blocks}, context.stream(), qkv.data(), shape, rotation, lanes,
                      to);
      },
      qkv.data(), rotation.cosine, rotation.sine, static_cast<const T*>(to.q), static_cast<const T*>(to.k),
      static_cast<const T*>(to.v));
}

template void split_heads(const Context&, BackendView<const float, 2>, const SplitShape&, const RopeTable*, std::size_t,
                          const SplitTargets<float>&);
template void split_heads(const Context&, BackendView<const float, 2>, const SplitShape&, const RopeTable*, std::size_t,
                          const SplitTargets<__nv_bfloat16>&);
}  // namespace kvs::cuda

namespace kvs::inline kernels {

void CudaBackend::split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                              BackendView<float, 4> v) {
  const auto [members, query_heads, tokens, head_dim] = q.shape();
  cuda::require(k.shape() == v.shape() && k.extent(0) == members && k.extent(2) == tokens && k.extent(3) == head_dim,
                "split_heads", "k and v of q's members, tokens and head_dim");
  const cuda::SplitShape shape{members, query_heads, k.extent(1), tokens, head_dim};
  cuda::split_heads<float>(context_, qkv, shape, nullptr, 0, {q.data(), k.data(), v.data(), head_dim});
}

}  // namespace kvs::inline kernels
