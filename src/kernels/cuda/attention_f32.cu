// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_tile.cuh"

namespace kvs::cuda {
namespace {

constexpr int kSide = 16;                            // the block is 16 × 16 threads
constexpr int kKeys = 32, kColumns = kKeys / kSide;  // keys per tile; columns of scores per thread, kSide apart
/// Queries per tile. With 256 channels, 64 would exceed the 99 KiB of shared memory of GPUs outside data centres.
template <int D>
constexpr int kQueries = D <= 128 ? 64 : 48;
template <int D>
constexpr int kRows = kQueries<D> / kSide;  // rows of scores and output per thread, adjacent
// Rows in shared memory are padded by four floats, so that 16-byte reads of adjacent rows use different banks.
constexpr int kPad = 4;

template <int D>
constexpr std::size_t shared_floats() {
  return (kQueries<D> + kKeys) * (D + kPad) + kQueries<D> * (kKeys + kPad);
}

/// to[r][0 … D) = row first + r [0 … head_dim), padded with zeros. A row past the end is all zeros.
template <int D, int Rows>
__device__ void load_rows(float* to, std::size_t head_dim, const TokenRows<float>& rows, int first) {
  for (int i = static_cast<int>(threadIdx.x); i < Rows * D; i += kSide * kSide) {
    const int r = i / D, d = i % D;
    const bool inside = first + r < rows.count && static_cast<std::size_t>(d) < head_dim;
    to[r * (D + kPad) + d] = inside ? rows.at(first + r)[d] : 0.0F;
  }
}

__device__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

/// Computes scores[i][j] of rows ty · kRows<D> + i and keys tx + kSide · j.
template <int D>
__device__ void multiply_scores(const float* queries, const float* keys, int ty, int tx,
                                float (&scores)[kRows<D>][kColumns]) {
  for (int d = 0; d < D; d += 4) {
    float4 k[kColumns];
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
      k[j] = *reinterpret_cast<const float4*>(keys + (tx + kSide * j) * (D + kPad) + d);
#pragma unroll
    for (int i = 0; i < kRows<D>; ++i) {
      const float4 q = *reinterpret_cast<const float4*>(queries + (ty * kRows<D> + i) * (D + kPad) + d);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) scores[i][j] = dot(q, k[j], scores[i][j]);
    }
  }
}

/// Reductions over the 16 threads (half a warp) that share a row.
__device__ float row_max(float value) {
  for (int step = kSide / 2; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, step));
  return value;
}
__device__ float row_sum(float value) {
  for (int step = kSide / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffU, value, step);
  return value;
}

template <int D>
__global__ void __launch_bounds__(kSide* kSide) attend(const AttentionArguments<float> in, const AttentionOrder order) {
  float* const queries = dynamic_shared<float>();            // [kQueries<D>][D + kPad]
  float* const states = queries + kQueries<D> * (D + kPad);  // [kKeys][D + kPad]: keys, then values
  float* const weights = states + kKeys * (D + kPad);        // [kQueries<D>][kKeys + kPad]
  const AttentionTile<float, kQueries<D>> tile(in, order);
  const int tx = static_cast<int>(threadIdx.x) % kSide, ty = static_cast<int>(threadIdx.x) / kSide;
  constexpr int kChannels = D / kSide;  // channels of output per thread, kSide apart
  float out[kRows<D>][kChannels] = {}, largest[kRows<D>], sum[kRows<D>] = {};
  for (float& value : largest) value = -INFINITY;

  const TokenRows<float> query_rows = tile.queries(in), key_rows = tile.states(in, in.past_k, in.k),
                         value_rows = tile.states(in, in.past_v, in.v);
  load_rows<D, kQueries<D>>(queries, in.head_dim, query_rows, tile.first);
  for (int first_key = tile.first_key / kKeys * kKeys; first_key < tile.keys; first_key += kKeys) {
    __syncthreads();  // the previous tile's values have been read
    load_rows<D, kKeys>(states, in.head_dim, key_rows, first_key);
    __syncthreads();
    float scores[kRows<D>][kColumns] = {};
    multiply_scores<D>(queries, states, ty, tx, scores);
#pragma unroll
    for (int i = 0; i < kRows<D>; ++i) {
      const int position = static_cast<int>(in.past) + tile.first + ty * kRows<D> + i;
      float best = -INFINITY;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int key = first_key + tx + kSide * j;
        const bool visible = key <= position && position - key < tile.window;
        scores[i][j] = visible ? capped(in, scores[i][j]) * unit_of(in) : -INFINITY;
        best = fmaxf(best, scores[i][j]);
      }
      const float above = fmaxf(largest[i], row_max(best)), base = base_of(above), fade = expf(largest[i] - base);
      largest[i] = above;
      sum[i] *= fade;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const float weight = expf(scores[i][j] - base);
        sum[i] += weight;
        weights[(ty * kRows<D> + i) * (kKeys + kPad) + tx + kSide * j] = weight;
      }
#pragma unroll
      for (int c = 0; c < kChannels; ++c) out[i][c] *= fade;
    }
    __syncthreads();  // the keys have been read, the weights are written
    load_rows<D, kKeys>(states, in.head_dim, value_rows, first_key);
    __syncthreads();
    for (int key = 0; key < kKeys; ++key) {
      float weight[kRows<D>];
#pragma unroll
      for (int i = 0; i < kRows<D>; ++i) weight[i] = weights[(ty * kRows<D> + i) * (kKeys + kPad) + key];
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        const float value = states[key * (D + kPad) + tx + kSide * c];
#pragma unroll
        for (int i = 0; i < kRows<D>; ++i) out[i][c] = fmaf(weight[i], value, out[i][c]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kRows<D>; ++i) {
    const int token = tile.first + ty * kRows<D> + i;
    const float total = row_sum(sum[i]);  // before the branch, because all lanes take part
    if (token >= query_rows.count) continue;
    float* const to = in.out + tile.out_offset(in, token);
#pragma unroll
    for (int c = 0; c < kChannels; ++c)
      if (static_cast<std::size_t>(tx + kSide * c) < in.head_dim) to[tx + kSide * c] = out[i][c] / total;
  }
}

template <int D>
void launch(const Context& context, const AttentionArguments<float>& in) {
  constexpr std::size_t kSharedBytes = shared_floats<D>() * sizeof(float);
  static_assert(kSharedBytes <= kMaxSharedBytes);
  launch_attention(context, in, attend<D>, kQueries<D>, kSide * kSide, kSharedBytes);
}

}  // namespace

void attention_f32(const Context& context, const AttentionArguments<float>& in) {
  if (in.head_dim <= 64) return launch<64>(context, in);
  if (in.head_dim <= 96) return launch<96>(context, in);
  if (in.head_dim <= 128) return launch<128>(context, in);
  launch<256>(context, in);
}

}  // namespace kvs::cuda
