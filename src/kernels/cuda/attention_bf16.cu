// SPDX-License-Identifier: Apache-2.0
// FlashAttention-2's scheme with mma.sync (compute capability 8.0). A block of 4 warps holds 128 queries (64 for more
// than 128 channels) of one head and iterates over tiles of 64 keys.
//
// Estimates (not measured) for 4,096 tokens, 32 heads of 128 channels:
// * Products: 4 · T² / 2 · d · H = 137 GFLOP, plus 1.5 % in the masked corners of the diagonal tiles. mma.sync reaches
//   about 60 % of a Hopper GPU's dense peak (wgmma reaches the rest) and nearly all of an A100's; FlashAttention-2
//   reaches 35 to 40 % and 70 %. On an H200 (989 TFLOP/s) that is 0.23 ms by the instruction's limit and 0.35 to 0.4 ms
//   by FlashAttention-2's share.
// * Shared memory: a warp reads 40 KiB of fragments for the 1.05 MFLOP of a tile. At 128 bytes per cycle this allows
//   3,300 FLOP per cycle and multiprocessor; mma.sync does 2,048 (A100) to about 2,500.
// * L2: every block reads the keys and values before it, 1.1 GB in total: 3 TB/s over 0.35 ms, below an H200's L2 rate.
// * Device memory: q, k, v and the output once in bf16, 134 MB (0.03 ms). If a hook reads the states, narrowed() first
//   moves 302 MB (0.07 ms; half of that with 8 KV heads), a tenth to a fifth of the total.
// * Exponentials: one per score, 16 per cycle and multiprocessor: 0.07 ms, in parallel with the other block's products.
//   With heads of 64 channels this is more than half of the time of the products.
// Registers: at most 255 per thread and no spills for sm_80 and sm_90 (nvcc 13.0), so two blocks fit a multiprocessor.
// Shared memory: 48, 40, 48, 64 and 96 KiB for heads of up to 64, 80, 96, 128 and 256 channels.
#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/shared_tile.cuh"

namespace kvs::cuda {
namespace {

using Arguments = AttentionArguments<__nv_bfloat16>;

constexpr int kWarps = 4, kBlockThreads = 32 * kWarps, kKeys = 64;  // kKeys: keys per tile
constexpr float kLog2E = 1.4426950408889634F;

/// The work of a block for heads of up to D channels. A warp handles 32 queries, so that it uses each fragment of keys
/// and values read from shared memory twice. With 16 queries the reads would take as long as the products. For more
/// than 128 channels, the registers hold the output of only 16 queries. Two blocks then fit a multiprocessor's 65,536
/// registers.
template <int D>
struct Plan {
  static constexpr int kRowBlocks = D <= 128 ? 2 : 1;  // blocks of 16 queries per warp
  static constexpr int kQueries = kWarps * 16 * kRowBlocks;
  static constexpr int kQueryBytes = kQueries * D * 2, kStateBytes = kKeys * D * 2;
  // Number of key and value tile pairs in shared memory. With two pairs, a block needs one barrier per tile instead of
  // two and a whole tile's time is available for loading. With more channels, the second pair would cost some GPUs the
  // second block.
  static constexpr int kPairs = D <= 64 ? 2 : 1, kPairBytes = 2 * kStateBytes;
  // Otherwise each tile of keys reads the query fragments again: a second pair or more output needs the registers.
  static constexpr bool kQueriesInRegisters = kPairs == 1 && D <= 80;
  static constexpr std::size_t kSharedBytes = kQueryBytes + kPairs * kPairBytes;
};

/// Packs two values into one word, `low` at the lower address.
__device__ std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

/// Returns the maximum over the 4 lanes that share a row.
__device__ float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 2));
}
__device__ float row_sum(float value) {
  value += __shfl_xor_sync(0xffffffffU, value, 1);
  return value + __shfl_xor_sync(0xffffffffU, value, 2);
}

/// Fragments of a warp's queries, [column / 16][row block]: kept in registers, or read on demand.
template <int D, bool Kept>
class QueryFragments {
 public:
  static constexpr int kBlocks = Plan<D>::kRowBlocks;
  __device__ explicit QueryFragments(const FragmentRow<D>& rows) : rows_(rows) {
    if constexpr (Kept) {
#pragma unroll
      for (int k = 0; k < D / 16; ++k) read(k, kept_[k]);
    }
  }
  __device__ void get(int k, std::uint32_t (&to)[kBlocks][4]) const {
    if constexpr (Kept) {
#pragma unroll
      for (int m = 0; m < kBlocks; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i) to[m][i] = kept_[k][m][i];
    } else {
      read(k, to);
    }
  }

 private:
  __device__ void read(int k, std::uint32_t (&to)[kBlocks][4]) const {
#pragma unroll
    for (int m = 0; m < kBlocks; ++m) ptx::load_matrices(to[m], rows_.at(m, k));
  }

  FragmentRow<D> rows_;
  std::uint32_t kept_[Kept ? D / 16 : 1][kBlocks][4];
};

/// Computes scores[row block][key / 8] of a warp's queries and a tile's keys.
template <int D, class Queries, int RowBlocks>
__device__ void multiply_scores(const Queries& queries, const FragmentRow<D>& keys, int ahead,
                                float (&scores)[RowBlocks][kKeys / 8][4]) {
#pragma unroll
  for (int m = 0; m < RowBlocks; ++m)
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (float& score : scores[m][n]) score = 0;
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    std::uint32_t a[RowBlocks][4];
    queries.get(k, a);
#pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      std::uint32_t b[4];  // two words of eight keys, two words of the next eight
      ptx::load_matrices(b, keys.at(n, k, ahead));
#pragma unroll
      for (int m = 0; m < RowBlocks; ++m) {
        ptx::multiply_add(scores[m][2 * n], a[m], b[0], b[1]);
        ptx::multiply_add(scores[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// A row block's rounded weights for a tile's keys: fragments of the left factor, [key / 16]. Rows and columns are laid
/// out as in the fragments of the scores.
struct Weights {
  std::uint32_t words[kKeys / 16][4];
};

/// out[row block][channel / 8] += weights · values.
template <int D, int RowBlocks>
__device__ void add_values(const Weights (&weights)[RowBlocks], const FragmentRow<D>& values, int ahead,
                           float (&out)[RowBlocks][D / 8][4]) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
#pragma unroll
    for (int n = 0; n < D / 16; ++n) {
      std::uint32_t b[4];  // two words of eight channels, two words of the next eight
      ptx::load_transposed(b, values.at(k, n, ahead));
#pragma unroll
      for (int m = 0; m < RowBlocks; ++m) {
        ptx::multiply_add(out[m][2 * n], weights[m].words[k], b[0], b[1]);
        ptx::multiply_add(out[m][2 * n + 1], weights[m].words[k], b[2], b[3]);
      }
    }
  }
}

/// Applies tanh to the raw scores, in units of the soft cap, through an exponential. The error is about 2^-22; the
/// result is 1 if the exponential overflows.
template <int RowBlocks>
__device__ void cap(const Arguments& in, float (&scores)[RowBlocks][kKeys / 8][4]) {
  const float step = 2 * kLog2E * (in.scale / in.softcap);
#pragma unroll
  for (int m = 0; m < RowBlocks; ++m)
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (float& score : scores[m][n]) score = 1.0F - __fdividef(2.0F, 1.0F + ptx::exp2_fast(score * step));
}

/// Masks keys that a row does not see. `position` is the position of the lane's first row, counted from the tile's
/// first key. The lane's second row is 8 further, the next row block 16 further.
template <int RowBlocks>
__device__ void mask(int position, int window, int count, int t, float (&scores)[RowBlocks][kKeys / 8][4]) {
#pragma unroll
  for (int m = 0; m < RowBlocks; ++m) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = position + m * 16 + i * 8, last = min(row, count - 1), before = row - window;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int key = n * 8 + 2 * t + j;
          if (key > last || key <= before) scores[m][n][2 * i + j] = -INFINITY;
        }
      }
    }
  }
}

/// A lane's running values for its two rows of a row block.
struct RowSums {
  float largest[2] = {-INFINITY, -INFINITY};  // largest step · score
  float sum[2] = {0, 0};                      // this lane's part of the sum of weights
};

/// Converts raw scores to weights 2^(step · score − largest), and rescales the rows' running sums and output to the new
/// largest scores.
template <int Channels>
__device__ Weights to_weights(float step, const float (&scores)[kKeys / 8][4], RowSums& rows,
                              float (&out)[Channels / 8][4]) {
  Weights weights;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float above = -INFINITY;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) above = fmaxf(above, fmaxf(scores[n][2 * i], scores[n][2 * i + 1]));
    above = fmaxf(rows.largest[i], row_max(above) * step);
    const float base = -base_of(above), fade = ptx::exp2_fast(rows.largest[i] + base);  // 1 if none is larger
    rows.largest[i] = above;
    rows.sum[i] *= fade;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      const float left = ptx::exp2_fast(fmaf(scores[n][2 * i], step, base)),
                  right = ptx::exp2_fast(fmaf(scores[n][2 * i + 1], step, base));
      rows.sum[i] += left + right;
      weights.words[n / 2][n % 2 * 2 + i] = pack(left, right);
    }
#pragma unroll
    for (int n = 0; n < Channels / 8; ++n) {
      out[n][2 * i] *= fade;
      out[n][2 * i + 1] *= fade;
    }
  }
  return weights;
}

/// Writes a warp's rows, first over its own queries in shared memory, then to the output in pieces of 16 bytes if the
/// output is aligned to 16 bytes, else of 4 bytes (head_dim is even).
template <int D, int RowBlocks>
__device__ void write(const Arguments& in, const AttentionTile<__nv_bfloat16, Plan<D>::kQueries>& tile, int first_row,
                      const RowSums (&rows)[RowBlocks], const float (&out)[RowBlocks][D / 8][4]) {
  using Tile = SharedTile<D>;
  auto* const shared = dynamic_shared<unsigned char>();
  const int lane = static_cast<int>(threadIdx.x) % 32, t = lane % 4;
#pragma unroll
  for (int m = 0; m < RowBlocks; ++m) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = first_row + m * 16 + i * 8 + lane / 4;
      const float share = __fdividef(1.0F, row_sum(rows[m].sum[i]));
#pragma unroll
      for (int n = 0; n < D / 8; ++n)
        *reinterpret_cast<std::uint32_t*>(shared + Tile::offset(row, n) + t * 4) =
            pack(out[m][n][2 * i] * share, out[m][n][2 * i + 1] * share);
    }
  }
  __syncwarp();
  const auto head_dim = static_cast<int>(in.head_dim), tokens = static_cast<int>(in.tokens);
  const bool wide = head_dim % 8 == 0 && reinterpret_cast<std::uintptr_t>(in.out) % 16 == 0;
  for (int i = lane; i < 16 * RowBlocks * Tile::kChunks; i += 32) {
    const int row = first_row + i / Tile::kChunks, chunk = i % Tile::kChunks, token = tile.first + row;
    if (token >= tokens || chunk * 8 >= head_dim) continue;
    const uint4 words = *reinterpret_cast<const uint4*>(shared + Tile::offset(row, chunk));
    __nv_bfloat16* const to = in.out + tile.out_offset(in, token) + chunk * 8;
    if (wide) {
      *reinterpret_cast<uint4*>(to) = words;
      continue;
    }
    const std::uint32_t word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (chunk * 8 + 2 * j < head_dim) *reinterpret_cast<std::uint32_t*>(to + 2 * j) = word[j];
  }
}

/// The tiles of one head's keys: first the past's tiles, then the own tokens' tiles, so that no tile contains both.
struct KeyTiles {
  int past, own;   // rows
  int past_tiles;  // the last tile may be shorter than kKeys, as may the last tile of the own rows
  int size;        // element distance between rows

  __device__ static int tiles_of(int rows) { return (rows + kKeys - 1) / kKeys; }
  __device__ int tile_of(int position) const {
    return position < past ? position / kKeys : past_tiles + (position - past) / kKeys;
  }
  __device__ int position(int tile) const {
    return tile < past_tiles ? tile * kKeys : past + (tile - past_tiles) * kKeys;
  }
  __device__ int count(int tile) const {
    return min(kKeys, tile < past_tiles ? past - tile * kKeys : own - (tile - past_tiles) * kKeys);
  }
  /// Starts to copy a tile's rows of `from`, keys or values.
  template <int D>
  __device__ void copy(ptx::SharedAddress to, const TokenRows<__nv_bfloat16>& from, int tile) const {
    const int row = (tile < past_tiles ? tile : tile - past_tiles) * kKeys;
    const __nv_bfloat16* const first = (tile < past_tiles ? from.past : from.own) + std::ptrdiff_t{row} * size;
    copy_rows<D, kKeys, kBlockThreads>(to, first, size, count(tile), size / 8);
  }
};

/// The visibility of a tile of keys for a warp, equal in all lanes.
struct Sight {
  bool any;  // some row of the warp sees some key
  bool all;  // every row sees every key
};

/// For rows at positions low … high and `count` keys from position `first` on.
__device__ Sight sight_of(int low, int high, int window, int first, int count) {
  const int last = first + kKeys - 1;
  return {.any = low <= high && first <= high && low - last < window,
          .all = count == kKeys && last <= low && high - first < window};
}

/// With one tile pair in shared memory, a tile's values are loaded while its keys are multiplied, and the next tile's
/// keys while its values are multiplied. With two pairs, the next tile's keys and values are loaded all the time.
template <int D>
__global__ void __launch_bounds__(kBlockThreads, 2) attend(const Arguments in, const AttentionOrder order) {
  using P = Plan<D>;
  constexpr int kRows = 16 * P::kRowBlocks;  // rows per warp
  const ptx::SharedAddress query_tile = ptx::shared_address(dynamic_shared<unsigned char>()),
                           key_tile = query_tile + P::kQueryBytes, value_tile = key_tile + P::kStateBytes;
  const AttentionTile<__nv_bfloat16, P::kQueries> tile(in, order);
  const TokenRows<__nv_bfloat16> queries = tile.queries(in), keys = tile.states(in, in.past_k, in.k),
                                 values = tile.states(in, in.past_v, in.v);
  const int lane = static_cast<int>(threadIdx.x) % 32,
            first_row = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 32, 0) * kRows;
  const int low = keys.past_count + tile.first + first_row, high = min(low + kRows, keys.count) - 1;  // the warp's rows
  const KeyTiles tiles{keys.past_count, queries.count, KeyTiles::tiles_of(keys.past_count), keys.size};
  const int begin = tiles.tile_of(tile.first_key), end = tiles.tile_of(tile.keys - 1) + 1;
  copy_rows<D, P::kQueries, kBlockThreads>(query_tile, queries.at(tile.first), queries.size, queries.count - tile.first,
                                           queries.size / 8);
  tiles.copy<D>(key_tile, keys, begin);
  if constexpr (P::kPairs == 2) tiles.copy<D>(value_tile, values, begin);
  ptx::commit_copies();
  ptx::wait_for_copies<0>();
  __syncthreads();
  // Lanes address rows of matrices. Queries' and values' matrices are ordered down the rows first, keys' across.
  const QueryFragments<D, P::kQueriesInRegisters> query(FragmentRow<D>(query_tile, first_row + lane % 16, lane / 16));
  const FragmentRow<D> key_row(key_tile, lane / 16 * 8 + lane % 8, lane / 8 % 2);
  const FragmentRow<D> value_row(value_tile, lane % 16, lane / 16);
  const float step = unit_of(in) * kLog2E;
  float out[P::kRowBlocks][D / 8][4] = {};
  RowSums rows[P::kRowBlocks];

  for (int at = begin; at < end; ++at) {
    const bool more = at + 1 < end;
    const int ahead = P::kPairs == 2 ? (at - begin) % 2 * P::kPairBytes : 0;  // offset of this tile's pair
    if constexpr (P::kPairs == 1) {
      tiles.copy<D>(value_tile, values, at);
    } else if (more) {
      tiles.copy<D>(key_tile + P::kPairBytes - ahead, keys, at + 1);
      tiles.copy<D>(value_tile + P::kPairBytes - ahead, values, at + 1);
    }
    ptx::commit_copies();
    const int first_key = tiles.position(at), count = tiles.count(at);
    const Sight sight = sight_of(low, high, tile.window, first_key, count);
    float scores[P::kRowBlocks][kKeys / 8][4];
    if (sight.any) multiply_scores<D>(query, key_row, ahead, scores);
    if constexpr (P::kPairs == 1) {
      ptx::wait_for_copies<0>();
      __syncthreads();  // the values have arrived, the keys have been read
      if (more) tiles.copy<D>(key_tile, keys, at + 1);
      ptx::commit_copies();
    }
    if (sight.any) {
      if (in.softcap > 0) cap(in, scores);
      if (!sight.all) mask(low + lane / 4 - first_key, tile.window, count, lane % 4, scores);
      Weights weights[P::kRowBlocks];
#pragma unroll
      for (int m = 0; m < P::kRowBlocks; ++m) weights[m] = to_weights<D>(step, scores[m], rows[m], out[m]);
      add_values<D>(weights, value_row, ahead, out);
    }
    ptx::wait_for_copies<0>();
    __syncthreads();  // the next keys (and values) have arrived, the values have been read
  }
  write<D>(in, tile, first_row, rows, out);
}

template <int D>
void launch(const Context& context, const Arguments& in) {
  static_assert(Plan<D>::kSharedBytes <= kMaxSharedBytes);
  launch_attention(context, in, attend<D>, Plan<D>::kQueries, kBlockThreads, Plan<D>::kSharedBytes);
}

}  // namespace

void attention_bf16(const Context& context, const Arguments& in) {
  if (in.head_dim <= 64) return launch<64>(context, in);
  if (in.head_dim <= 80) return launch<80>(context, in);
  if (in.head_dim <= 96) return launch<96>(context, in);
  if (in.head_dim <= 128) return launch<128>(context, in);
  launch<256>(context, in);
}

}  // namespace kvs::cuda
