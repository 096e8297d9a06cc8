#include <cuda_bf16.h>

#include <climits>
#include <cstdint>

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/ptx.cuh"

namespace kvs::cuda {
namespace {

constexpr int kWarps = 4, kQueries = 16 * kWarps, kKeys = 64;  // of a tile; a warp takes 16 queries
// Rows in shared memory are padded by 8 bf16 (4 banks), so that the 8 rows × 4 words of a fragment hit 32 banks.
constexpr int kPad = 8;
constexpr float kLog2E = 1.4426950408889634F;

template <int D>
constexpr std::size_t shared_bytes() {
  return ((kQueries + kKeys) * (D + kPad) + D * (kKeys + kPad)) * sizeof(__nv_bfloat16);
}

/// Two values as one word, `low` at the lower address.
__device__ std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

__device__ std::uint32_t word(const __nv_bfloat16* at) { return *reinterpret_cast<const std::uint32_t*>(at); }

/// to[row][0 … D) = row(r)[0 … head_dim) and zeros.
template <int D, int Rows, class Row>
__device__ void load_rows(__nv_bfloat16* to, std::size_t head_dim, Row row) {
  for (int i = static_cast<int>(threadIdx.x); i < Rows * D / 2; i += 32 * kWarps) {
    const int r = i / (D / 2), d = i % (D / 2) * 2;
    const __nv_bfloat16* const from = row(r);
    const bool inside = from != nullptr && static_cast<std::size_t>(d) < head_dim;
    *reinterpret_cast<std::uint32_t*>(to + r * (D + kPad) + d) = inside ? word(from + d) : 0;
  }
}

/// to[channel][0 … kKeys) = the values of one tile, transposed: a product's fragment wants pairs of keys in one word.
/// A warp takes 4 pairs of keys × 8 channels at a time, which hit 32 banks.
template <int D, class Row>
__device__ void load_transposed(__nv_bfloat16* to, std::size_t head_dim, Row row) {
  constexpr int kCells = kKeys / 8 * (D / 8);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int cell = warp; cell < kCells; cell += kWarps) {
    const int key = (cell % (kKeys / 8) * 4 + lane % 4) * 2, channel = cell / (kKeys / 8) * 8 + lane / 4;
    const bool inside = static_cast<std::size_t>(channel) < head_dim;
    const __nv_bfloat16 *low = row(key), *high = row(key + 1), zero{};
    const __nv_bfloat162 pair(inside && low != nullptr ? low[channel] : zero,
                              inside && high != nullptr ? high[channel] : zero);
    *reinterpret_cast<__nv_bfloat162*>(to + channel * (kKeys + kPad) + key) = pair;
  }
}

/// Over the 4 lanes that share a row.
__device__ float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 2));
}
__device__ float row_sum(float value) {
  value += __shfl_xor_sync(0xffffffffU, value, 1);
  return value + __shfl_xor_sync(0xffffffffU, value, 2);
}

/// scores of the warp's 16 queries and the tile's keys: [key / 8][fragment].
template <int D>
__device__ void multiply_scores(const __nv_bfloat16* queries, const __nv_bfloat16* keys, int g, int t,
                                float (&scores)[kKeys / 8][4]) {
#pragma unroll
  for (int d = 0; d < D; d += 16) {
    const __nv_bfloat16 *upper = queries + g * (D + kPad) + d + 2 * t, *lower = upper + 8 * (D + kPad);
    const std::uint32_t a[4] = {word(upper), word(lower), word(upper + 8), word(lower + 8)};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      const __nv_bfloat16* b = keys + (n * 8 + g) * (D + kPad) + d + 2 * t;
      ptx::multiply_add(scores[n], a, word(b), word(b + 8));
    }
  }
}

template <int D>
__device__ void add_values(const float (&weights)[kKeys / 8][4], const __nv_bfloat16* values, int g, int t,
                           float (&out)[D / 8][4]) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    // Two fragments of a sum are one fragment of a left operand.
    const float(&low)[4] = weights[2 * k], (&high)[4] = weights[2 * k + 1];
    const std::uint32_t a[4] = {pack(low[0], low[1]), pack(low[2], low[3]), pack(high[0], high[1]),
                                pack(high[2], high[3])};
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const __nv_bfloat16* b = values + (n * 8 + g) * (kKeys + kPad) + k * 16 + 2 * t;
      ptx::multiply_add(out[n], a, word(b), word(b + 8));
    }
  }
}

/// What a lane knows of its two rows.
struct RowSums {
  float largest[2] = {-INFINITY, -INFINITY};  // of the scores before scaling
  float sum[2] = {0, 0};                      // this lane's part of the weights
};

/// Turns raw scores into weights 2^(step · (score − largest)). Key n of the tile is seen by row i if `before`[i] < n ≤
/// `last`[i]. @return by what the rows' earlier sums must be multiplied
template <int Blocks>
__device__ float2 to_weights(const AttentionArguments<__nv_bfloat16>& in, float (&scores)[Blocks][4], RowSums& rows,
                             const long long (&before)[2], const long long (&last)[2], int t) {
  const float step = unit_of(in) * kLog2E;
  float fade[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float best = -INFINITY;
#pragma unroll
    for (int n = 0; n < Blocks; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int key = n * 8 + 2 * t + j;
        float& score = scores[n][2 * i + j];
        score = key <= last[i] && key > before[i] ? capped(in, score) : -INFINITY;
        best = fmaxf(best, score);
      }
    }
    const float above = fmaxf(rows.largest[i], row_max(best)), base = base_of(above);
    fade[i] = exp2f((rows.largest[i] - base) * step);
    rows.largest[i] = above;
    rows.sum[i] *= fade[i];
#pragma unroll
    for (int n = 0; n < Blocks; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) rows.sum[i] += scores[n][2 * i + j] = exp2f((scores[n][2 * i + j] - base) * step);
    }
  }
  return {fade[0], fade[1]};
}

template <int D>
__global__ void __launch_bounds__(32 * kWarps) attend(const AttentionArguments<__nv_bfloat16> in) {
  auto* const queries = dynamic_shared<__nv_bfloat16>();        // [kQueries][D + kPad]
  __nv_bfloat16* const keys = queries + kQueries * (D + kPad);  // [kKeys][D + kPad]
  __nv_bfloat16* const values = keys + kKeys * (D + kPad);      // [D][kKeys + kPad]
  const AttentionTile<__nv_bfloat16, kQueries> tile(in);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4, t = lane % 4;
  const std::size_t token = tile.first + warp * 16 + g;  // of the lane's first row; the second is 8 on
  const long long window = in.window == 0 ? LLONG_MAX / 2 : static_cast<long long>(in.window);
  float out[D / 8][4] = {};
  RowSums rows;

  load_rows<D, kQueries>(queries, in.head_dim, [&](int r) { return tile.query(in, tile.first + r); });
  for (std::size_t first_key = tile.first_key / kKeys * kKeys; first_key < tile.keys; first_key += kKeys) {
    __syncthreads();  // the last tile has been read
    load_rows<D, kKeys>(keys, in.head_dim, [&](int r) { return tile.state(in, in.past_k, in.k, first_key + r); });
    load_transposed<D>(values, in.head_dim, [&](int r) { return tile.state(in, in.past_v, in.v, first_key + r); });
    __syncthreads();
    float scores[kKeys / 8][4] = {};
    multiply_scores<D>(queries + warp * 16 * (D + kPad), keys, g, t, scores);
    const auto last = static_cast<long long>(in.past + token) - static_cast<long long>(first_key);
    const float2 fade = to_weights(in, scores, rows, {last - window, last + 8 - window}, {last, last + 8}, t);
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      out[n][0] *= fade.x;
      out[n][1] *= fade.x;
      out[n][2] *= fade.y;
      out[n][3] *= fade.y;
    }
    add_values<D>(scores, values, g, t, out);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float total = row_sum(rows.sum[i]);  // before the branch: all lanes take part
    if (token + 8 * i >= in.tokens) continue;
    auto* const to = in.out + tile.out_offset(in, token + 8 * i);
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      if (static_cast<std::size_t>(n * 8 + 2 * t) < in.head_dim)
        *reinterpret_cast<std::uint32_t*>(to + n * 8 + 2 * t) = pack(out[n][2 * i] / total, out[n][2 * i + 1] / total);
    }
  }
}

template <int D>
void launch(const Context& context, const AttentionArguments<__nv_bfloat16>& in) {
  launch_attention(context, in, attend<D>, kQueries, 32 * kWarps, shared_bytes<D>());
}

}  // namespace

void attention_bf16(const Context& context, const AttentionArguments<__nv_bfloat16>& in) {
  if (in.head_dim <= 64) return launch<64>(context, in);
  if (in.head_dim <= 96) return launch<96>(context, in);
  if (in.head_dim <= 128) return launch<128>(context, in);
  launch<256>(context, in);
}

}  // namespace kvs::cuda
