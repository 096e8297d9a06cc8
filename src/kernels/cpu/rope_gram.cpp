// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/rope_sums.h"
#include "kernels/cpu/rope_tile.h"

namespace kvs::cpu {

namespace {

// Tokens per block. A token costs kBlock/2 outer products for pairs inside the block, and one for pairs across blocks
// (S is reused kBlock times). 16 balances the two and keeps a block of 64-dimensional heads in the first-level cache.
constexpr std::size_t kBlock = 16;
constexpr std::size_t kPairs = kBlock * (kBlock + 1) / 2;

/// Memory of one thread for the rows of one tile of kDoubles chunks. "Group" below means kDoubles columns.
struct Workspace {
  Workspace(std::size_t groups, std::size_t heads)
      : a(kBlock * kComponents * groups),
        b(kBlock * kComponents * groups),
        delta(kPairs * groups),
        moment(kDoubles * kComponents * kComponents * groups),
        gram(heads * kDoubles * groups) {}

  std::vector<Lane> a, b;    // [token of the block, component, group]
  std::vector<Lane> delta;   // [pair of the block, group]
  std::vector<Lane> moment;  // S = Σ_{j of earlier blocks} b bᵀ: [row, component, component', group]
  std::vector<Lane> gram;    // [query head of the group, row, group]
};

/// Computes rows [tile · kDoubles, (tile + 1) · kDoubles), and columns from the same chunk on, of the Gram matrices of
/// one KV head's query heads. Tiles share no data, so they run in parallel without synchronisation.
class GramTile {
 public:
  GramTile(const RopeOperands& in, Workspace& work, std::size_t kv_head, std::size_t tile)
      : in_(in), work_(work), kv_head_(kv_head), tile_(tile), groups_((in.half + kDoubles - 1) / kDoubles) {
    std::ranges::fill(work.a, Lane{});  // padding chunks stay zero
    std::ranges::fill(work.b, Lane{});
    std::ranges::fill(work.moment, Lane{});
    std::ranges::fill(work.gram, Lane{});
  }

  void run() {
    for (std::size_t first = 0; first < in_.tokens; first += kBlock) {
      const std::size_t count = std::min(kBlock, in_.tokens - first);
      GramBlock block{.tokens = count,
                      .groups = groups_,
                      .first_group = tile_,
                      .queries = doubles(work_.a),
                      .keys = doubles(work_.b),
                      .deltas = doubles(work_.delta),
                      .moment = doubles(work_.moment),
                      .gram = doubles(work_.gram)};
      load(first, count, RopeSide::kKey, kv_head_, work_.b);
      for (std::size_t head = 0; head < in_.group; ++head, block.gram += kDoubles * groups_ * kDoubles) {
        load(first, count, RopeSide::kQuery, kv_head_ * in_.group + head, work_.a);
        if (first > 0) loops().add_earlier_blocks(block);
        loops().add_within_block(block);
      }
      loops().extend_moment(block);
    }
  }

  /// Adds this tile's sums to gram[c, c'] and to the mirror element.
  void store(TensorView<double, 3> gram) const {
    const std::size_t first_row = tile_ * kDoubles, last_row = std::min(first_row + kDoubles, in_.half);
    for (std::size_t head = 0; head < in_.group; ++head) {
      const double* sums = doubles(work_.gram) + head * kDoubles * groups_ * kDoubles;
      const TensorView<double, 2> out = gram.slice(kv_head_ * in_.group + head);
      for (std::size_t row = first_row; row < last_row; ++row) {
        for (std::size_t column = row; column < in_.half; ++column) {
          const double sum = sums[(row - first_row) * groups_ * kDoubles + column];
          out(row, column) += sum;
          if (column != row) out(column, row) += sum;
        }
      }
    }
  }

 private:
  /// GCC and Clang allow a double to alias the elements of such a vector.
  static double* doubles(std::vector<Lane>& lanes) { return reinterpret_cast<double*>(lanes.data()); }

  void load(std::size_t first, std::size_t count, RopeSide side, std::size_t head, std::vector<Lane>& block) {
    const std::size_t stride = groups_ * kDoubles;
    double* out = doubles(block);
    for (std::size_t token = first; token < first + count; ++token, out += kComponents * stride) {
      rope_components(in_, side, head, token, tile_ * kDoubles, out, stride, 1);
    }
  }

  const RopeOperands& in_;
  Workspace& work_;
  std::size_t kv_head_, tile_, groups_;
};

}  // namespace

void accumulate_rope_gram(const RopeOperands& in, TensorView<double, 3> gram) {
  if (gram.shape() != std::array{in.query_heads, in.half, in.half})
    throw Error(ErrorCode::kInternal, "rope gram", "the sum's shape is not [query_head, chunk, chunk]");
  const std::size_t groups = (in.half + kDoubles - 1) / kDoubles;
  // Allocates before the parallel region, because an exception must not leave the region.
  std::vector<Workspace> work(static_cast<std::size_t>(omp_get_max_threads()), Workspace(groups, in.group));
  // The first tiles have the most columns, so they are scheduled first.
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t task = 0; task < groups * in.kv_heads; ++task) {
    GramTile tile(in, work[static_cast<std::size_t>(omp_get_thread_num())], task % in.kv_heads, task / in.kv_heads);
    tile.run();
    tile.store(gram);
  }
}

}  // namespace kvs::cpu
