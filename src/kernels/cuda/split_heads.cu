#include <algorithm>

#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rotate.cuh"
#include "kernels/cuda/values.cuh"

namespace kvs {
namespace cuda {
namespace {

struct SplitShape {
  std::size_t query_heads, kv_heads, tokens, head_dim;
  std::size_t half, first_position;  // chunks that are rotated: 0 for none
  unsigned lanes;                    // threads that share a head
};

/// Where the heads go: [member, head, token, head_dim].
struct SplitTargets {
  float* __restrict__ q, * __restrict__ k, * __restrict__ v;
};

/// Head `head` of a row, counted through q, k and v.
__device__ float* target_of(const SplitTargets& to, const SplitShape& shape, std::size_t head) {
  const std::size_t plane = shape.tokens * shape.head_dim, member = blockIdx.y;
  if (head < shape.query_heads) return to.q + (member * shape.query_heads + head) * plane;
  head -= shape.query_heads;
  if (head < shape.kv_heads) return to.k + (member * shape.kv_heads + head) * plane;
  return to.v + (member * shape.kv_heads + head - shape.kv_heads) * plane;
}

/// One block a token of a member. A thread keeps its channels, and so their cosines and sines, and takes several heads.
template <int N>
__global__ void split_rows(const float* __restrict__ qkv, SplitShape shape, const float* __restrict__ cosine,
                           const float* __restrict__ sine, SplitTargets to) {
  const std::size_t token = blockIdx.x, heads = shape.query_heads + 2 * shape.kv_heads;
  const std::size_t first_head = threadIdx.x / shape.lanes, head_step = kThreads / shape.lanes;
  if (first_head >= head_step) return;  // where the block is no multiple of the lanes
  const float* const row = qkv + (blockIdx.y * shape.tokens + token) * heads * shape.head_dim;
  for (std::size_t channel = threadIdx.x % shape.lanes * N; channel < shape.head_dim; channel += shape.lanes * N) {
    const bool low = channel < shape.half, turns = channel < 2 * shape.half;
    const std::size_t partner = low ? channel + shape.half : channel - shape.half;
    Values<N> cosines{}, sines{};
    if (turns) {
      const std::size_t at = (shape.first_position + token) * shape.half + (low ? channel : partner);
      cosines = load<N>(cosine + at);
      sines = load<N>(sine + at);
    }
#pragma unroll 4
    for (std::size_t head = first_head; head < heads; head += head_step) {
      Values<N> values = load<N>(row + head * shape.head_dim + channel);
      if (turns && head < shape.query_heads + shape.kv_heads) {
        const Values<N> others = load<N>(row + head * shape.head_dim + partner);
#pragma unroll
        for (int n = 0; n < N; ++n)
          values.at[n] = rotated(values.at[n], others.at[n], cosines.at[n], low ? -sines.at[n] : sines.at[n]);
      }
      store(target_of(to, shape, head) + token * shape.head_dim + channel, values);
    }
  }
}

}  // namespace
}  // namespace cuda

void CudaBackend::split_heads(BackendView<const float, 2> qkv, const RopeTable* table, std::size_t first_position,
                              BackendView<float, 4> q, BackendView<float, 4> k, BackendView<float, 4> v) {
  const auto [members, query_heads, tokens, head_dim] = q.shape();
  const std::size_t kv_heads = k.extent(1), columns = (query_heads + 2 * kv_heads) * head_dim;
  cuda::require(k.shape() == v.shape() && k.extent(0) == members && k.extent(2) == tokens && k.extent(3) == head_dim,
                "split_heads", "k and v of q's members, tokens and head_dim");
  cuda::require(qkv.extent(0) == members * tokens && qkv.extent(1) == columns, "split_heads",
                "qkv of [member · token, (H + 2G) · head_dim]");
  cuda::require(tokens < 0x80000000, "split_heads", "fewer than 2^31 tokens");
  if (qkv.empty()) return;
  cuda::SplitShape shape{query_heads, kv_heads, tokens, head_dim, 0, first_position, 0};
  const float *cosine = nullptr, *sine = nullptr;
  if (table != nullptr) {
    shape.half = cuda::checked_chunks(*table, head_dim, first_position + tokens);
    cosine = table->cosine.data();
    sine = table->sine.data();
  }
  const dim3 blocks(static_cast<unsigned>(tokens), cuda::grid_rows(members, "split_heads"));
  cuda::with_values<4>(
      shape.half | shape.head_dim,  // a multiple of 4 if both are
      [&](auto n) {
        shape.lanes = static_cast<unsigned>(std::min<std::size_t>(shape.head_dim / n(), cuda::kThreads));
        cuda::launch_kernel("split_rows", cuda::split_rows<n()>, {blocks}, context_.stream(), qkv.data(), shape, cosine,
                            sine, cuda::SplitTargets{q.data(), k.data(), v.data()});
      },
      qkv.data(), cosine, sine, q.data(), k.data(), v.data());
}

}  // namespace kvs
