// FlashAttention-2's scheme on mma.sync (compute capability 8.0): a block of 4 warps holds 128 queries (64 beyond 128
// channels) of one head and walks over tiles of 64 keys.
//
// Estimates, no measurement, for 4,096 tokens, 32 heads of 128 channels:
// * Products: 4 · T² / 2 · d · H = 137 GFLOP, and 1.5 % more in the masked corners of the diagonal tiles. mma.sync
//   reaches some 60 % of a Hopper GPU's dense peak (wgmma the rest), nearly all of an A100's; FlashAttention-2 itself
//   35 to 40 % and 70 %. On an H200 (989 TFLOP/s) that is 0.23 ms by the instruction, 0.35 to 0.4 ms by the precedent.
// * Shared memory: a warp reads 40 KiB of fragments for the 1.05 MFLOP of a tile. At 128 bytes a cycle that allows a
//   multiprocessor 3,300 FLOP a cycle; mma.sync does 2,048 (A100) to some 2,500.
// * L2: every block reads the keys and values before it, 1.1 GB in all: 3 TB/s over 0.35 ms, below an H200's L2.
// * Device memory: q, k, v and the output once in bf16, 134 MB (0.03 ms); where a hook looks at the states,
//   narrowed() moves 302 MB before that (0.07 ms; half of it with 8 kv heads), a tenth to a fifth of the whole.
// * Exponentials: one a score, 16 a cycle and multiprocessor: 0.07 ms, beside the products of the other block there.
//   With heads of 64 that is more than half of the time of the products.
// Registers: at most 255 a thread and no spills for sm_80 and sm_90 (nvcc 13.0), so two blocks a multiprocessor; shared
// memory 48, 40, 48, 64 and 96 KiB for heads of up to 64, 80, 96, 128 and 256.
#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/shared_tile.cuh"

namespace kvs::cuda {
namespace {

using Arguments = AttentionArguments<__nv_bfloat16>;

constexpr int kWarps = 4, kBlockThreads = 32 * kWarps, kKeys = 64;  // kKeys: of a tile
constexpr float kLog2E = 1.4426950408889634F;

/// How a block works on heads of up to D channels. A warp takes 32 queries, so that each fragment of keys and values
/// that it reads from shared memory is used twice; with 16 the reads would be as long as the products. Beyond 128
/// channels the registers hold the output of 16 only. Two blocks then fit a multiprocessor's 65,536 registers.
template <int D>
struct Plan {
  static constexpr int kRowBlocks = D <= 128 ? 2 : 1;  // of 16 queries a warp
  static constexpr int kQueries = kWarps * 16 * kRowBlocks;
  static constexpr int kQueryBytes = kQueries * D * 2, kStateBytes = kKeys * D * 2;
  // Tiles of keys and values in shared memory at a time. With two a block needs one barrier a tile instead of two and
  // has a whole tile's time to load; with more channels the second pair would cost some GPUs their second block.
  static constexpr int kPairs = D <= 64 ? 2 : 1, kPairBytes = 2 * kStateBytes;
  // Else their fragments are read again for every tile of keys: registers are short beside a second pair or more
  // output.
  static constexpr bool kQueriesInRegisters = kPairs == 1 && D <= 80;
  static constexpr std::size_t kSharedBytes = kQueryBytes + kPairs * kPairBytes;
};

/// Two values as one word, `low` at the lower address.
__device__ std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
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

/// Fragments of a warp's queries, [column / 16][row block]: kept, or read when asked for.
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

/// scores[row block][key / 8] of a warp's queries and a tile's keys.
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
      std::uint32_t b[4];  // two words of eight keys, two of the next eight
      ptx::load_matrices(b, keys.at(n, k, ahead));
#pragma unroll
      for (int m = 0; m < RowBlocks; ++m) {
        ptx::multiply_add(scores[m][2 * n], a[m], b[0], b[1]);
        ptx::multiply_add(scores[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// A row block's weights of a tile's keys, rounded: fragments of the left factor, [key / 16]. Rows and columns lie in
/// them as they do in the scores' fragments.
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
      std::uint32_t b[4];  // two words of eight channels, two of the next eight
      ptx::load_transposed(b, values.at(k, n, ahead));
#pragma unroll
      for (int m = 0; m < RowBlocks; ++m) {
        ptx::multiply_add(out[m][2 * n], weights[m].words[k], b[0], b[1]);
        ptx::multiply_add(out[m][2 * n + 1], weights[m].words[k], b[2], b[3]);
      }
    }
  }
}

/// tanh of the raw scores in units of the soft cap, by its exponential: off by some 2^-22, 1 where that overflows.
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

/// Takes away the keys that a row does not see. `position` is that of the lane's first row, counted from the tile's
/// first key; of the lane's rows, one is 8 on, the next row block 16.
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

/// What a lane knows of its two rows of a row block.
struct RowSums {
  float largest[2] = {-INFINITY, -INFINITY};  // of step · score
  float sum[2] = {0, 0};                      // this lane's part of the weights
};

/// Turns raw scores into weights 2^(step · score − largest) and brings what the rows have summed so far to the new
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
    const float base = -base_of(above), fade = ptx::exp2_fast(rows.largest[i] + base);  // exactly 1 if none is larger
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

/// Writes a warp's rows: first over its own queries in shared memory, from there in pieces of 16 bytes where the output
/// is aligned to them, else of 4 (head_dim is even).
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

/// The tiles of keys of one head: those of the past, then those of the own tokens, so that none has parts of both.
struct KeyTiles {
  int past, own;   // rows
  int past_tiles;  // the last may be shorter than kKeys, as may that of the own rows
  int size;        // elements from a row to the next

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
  /// Begins to copy a tile's rows of `from`, keys or values.
  template <int D>
  __device__ void copy(ptx::SharedAddress to, const TokenRows<__nv_bfloat16>& from, int tile) const {
    const int row = (tile < past_tiles ? tile : tile - past_tiles) * kKeys;
    const __nv_bfloat16* const first = (tile < past_tiles ? from.past : from.own) + std::ptrdiff_t{row} * size;
    copy_rows<D, kKeys, kBlockThreads>(to, first, size, count(tile), size / 8);
  }
};

/// What a warp needs to know of a tile of keys, all lanes the same.
struct Sight {
  bool any;  // some row of the warp sees some key
  bool all;  // every row sees every key
};

/// Rows at positions low … high, `count` keys from position `first` on.
__device__ Sight sight_of(int low, int high, int window, int first, int count) {
  const int last = first + kKeys - 1;
  return {.any = low <= high && first <= high && low - last < window,
          .all = count == kKeys && last <= low && high - first < window};
}

/// With one pair of tiles in shared memory, a tile's values are on their way while its keys are multiplied, and the
/// next tile's keys while its values are. With two, the next tile's keys and values are all the time.
template <int D>
__global__ void __launch_bounds__(kBlockThreads, 2) attend(const Arguments in, const AttentionOrder order) {
  using P = Plan<D>;
  constexpr int kRows = 16 * P::kRowBlocks;  // of a warp
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
  // Lanes give the rows of matrices that lie, for queries and values, below one another first, for keys side by side.
  const QueryFragments<D, P::kQueriesInRegisters> query(FragmentRow<D>(query_tile, first_row + lane % 16, lane / 16));
  const FragmentRow<D> key_row(key_tile, lane / 16 * 8 + lane % 8, lane / 8 % 2);
  const FragmentRow<D> value_row(value_tile, lane % 16, lane / 16);
  const float step = unit_of(in) * kLog2E;
  float out[P::kRowBlocks][D / 8][4] = {};
  RowSums rows[P::kRowBlocks];

  for (int at = begin; at < end; ++at) {
    const bool more = at + 1 < end;
    const int ahead = P::kPairs == 2 ? (at - begin) % 2 * P::kPairBytes : 0;  // of this tile's pair
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
      __syncthreads();  // the values are there, the keys have been read
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
    __syncthreads();  // the next keys (and values) are there, the values have been read
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
