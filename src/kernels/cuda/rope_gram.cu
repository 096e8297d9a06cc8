// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rope_components.cuh"

namespace kvs::cuda {
namespace {

// A block of threads computes a tile of kTile × kTile chunk pairs (c, c') of one query head and iterates over the
// tokens. Each thread keeps S[m, n] = Σ_{j ≤ i} b_{c,m}(j) b_{c',n}(j) of kRows pairs in registers, adds token i's key
// to S and computes a_c(i)ᵀ S a_c'(i). That is 36 fused multiply-adds in double per token and pair, without
// intermediates in memory: 0.77 TFLOP for 32 layers of 32 heads of 64 chunks at 4,096 tokens. Each query head of a KV
// head builds its own S, which is less than half of the work. One block for all of them would leave too few blocks for
// a large GPU.
constexpr unsigned kTile = 16, kRows = 2, kGramThreads = kTile * kTile / kRows;
constexpr unsigned kStage = 8;  // number of tokens in shared memory at once

/// Components of the row tile's chunks, then of the column tile's. Pairs of components are stored apart, so that the
/// lanes of a warp read adjacent 16-byte words.
using StagedState = double2[kComponents / 2][2 * kTile];

/// The position of a block: tiles on and above the diagonal in the order (0,0), (0,1), (1,1), (0,2), …
struct TilePlace {
  __device__ explicit TilePlace(unsigned index) {
    while (index > column) index -= ++column;
    row = index;
  }
  /// Returns the chunk of entry `at` of a StagedState.
  __device__ std::size_t chunk(unsigned at) const {
    return at < kTile ? std::size_t{row} * kTile + at : std::size_t{column} * kTile + at - kTile;
  }
  unsigned row = 0, column = 0;
};

__device__ void store_components(StagedState& staged, unsigned at, const RopeComponents& from) {
  staged[0][at] = {from.value[0], from.value[1]};
  staged[1][at] = {from.value[2], from.value[3]};
}

__device__ RopeComponents load_components(const StagedState& staged, unsigned at) {
  return {staged[0][at].x, staged[0][at].y, staged[1][at].x, staged[1][at].y};
}

struct StagedToken {
  StagedState key, query;
};

__device__ void stage_tokens(const RopeOperands& in, const TilePlace& place, std::size_t head, std::size_t first,
                             unsigned count, StagedToken* staged) {
  for (unsigned i = threadIdx.x; i < count * 2 * kTile; i += kGramThreads) {
    const unsigned at = i % (2 * kTile), token = i / (2 * kTile);
    const std::size_t chunk = place.chunk(at);
    RopeComponents key{}, query{};
    if (chunk < in.half) {
      key = key_components(in, head / in.group, first + token, chunk);
      query = query_components(in, head, first + token, chunk);
    }
    store_components(staged[token].key, at, key);
    store_components(staged[token].query, at, query);
  }
}

/// moment += key_row · key_columnᵀ. @return query_rowᵀ · moment · query_column
__device__ double add_token(double (&moment)[kComponents][kComponents], const StagedToken& token, unsigned row,
                            const RopeComponents& key, const RopeComponents& query) {
  const RopeComponents row_key = load_components(token.key, row), row_query = load_components(token.query, row);
  double sum = 0;
#pragma unroll
  for (unsigned m = 0; m < kComponents; ++m) {
    double product = 0;
#pragma unroll
    for (unsigned n = 0; n < kComponents; ++n) {
      moment[m][n] += row_key.value[m] * key.value[n];
      product += moment[m][n] * query.value[n];
    }
    sum += row_query.value[m] * product;
  }
  return sum;
}

/// Adds to gram [query_head, chunk, chunk]. Blocks: (tile, query_head).
__global__ void __launch_bounds__(kGramThreads) gram_tiles(const RopeOperands in, double* gram) {
  __shared__ StagedToken staged[kStage];
  const TilePlace place(blockIdx.x);
  const std::size_t head = blockIdx.y;
  const unsigned column = kTile + threadIdx.x % kTile, first_row = threadIdx.x / kTile;
  double moment[kRows][kComponents][kComponents] = {}, sum[kRows] = {};
  for (std::size_t first = 0; first < in.tokens; first += kStage) {
    const auto count = static_cast<unsigned>(min(in.tokens - first, std::size_t{kStage}));
    __syncthreads();  // the previous tokens have been read
    stage_tokens(in, place, head, first, count, staged);
    __syncthreads();
    for (unsigned t = 0; t < count; ++t) {
      const RopeComponents key = load_components(staged[t].key, column),
                           query = load_components(staged[t].query, column);
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r)
        sum[r] += add_token(moment[r], staged[t], first_row + r * (kTile / kRows), key, query);
    }
  }
  double* const to = gram + head * in.half * in.half;
  const std::size_t to_column = place.chunk(column);
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const std::size_t to_row = place.chunk(first_row + r * (kTile / kRows));
    if (to_row > to_column || to_column >= in.half) continue;
    const double total = to[to_row * in.half + to_column] + sum[r];
    to[to_row * in.half + to_column] = total;
    to[to_column * in.half + to_row] = total;
  }
}

class CudaRopeGrams final : public RopeGrams {
 public:
  CudaRopeGrams(const Context& context, TensorView<double, 4> gram)
      : context_(context), gram_(gram), sums_(context, gram.size()) {
    context.clear(sums_.data(), sums_.size() * sizeof(double));
  }

  void add(std::size_t layer, BackendView<const float, 3> q, BackendView<const float, 3> k, const RopeTable& table,
           std::size_t first_position) override {
    const RopeOperands in(q, k, table, first_position);
    const TensorView<double, 3> of_layer = gram_.slice(layer);
    if (of_layer.shape() != std::array{in.query_heads, in.half, in.half})
      throw Error(ErrorCode::kInternal, "rope gram", "the sum's shape is not [layer, query_head, chunk, chunk]");
    if (in.tokens == 0 || in.half == 0) return;
    const std::size_t tiles = (in.half + kTile - 1) / kTile;
    const dim3 blocks(static_cast<unsigned>(tiles * (tiles + 1) / 2), static_cast<unsigned>(in.query_heads));
    launch_kernel("gram_tiles", gram_tiles, {blocks, kGramThreads}, context_.stream(), in,
                  sums_.data() + layer * of_layer.size());
  }

  void finish() override {
    const std::vector<double> added = sums_.to_host();
    for (std::size_t i = 0; i < added.size(); ++i) gram_.data()[i] += added[i];
  }

 private:
  const Context& context_;
  TensorView<double, 4> gram_;
  DeviceArray<double> sums_;  // same shape as gram_
};

}  // namespace

std::unique_ptr<RopeGrams> make_rope_grams(const Context& context, TensorView<double, 4> gram) {
  return std::make_unique<CudaRopeGrams>(context, gram);
}

}  // namespace kvs::cuda
