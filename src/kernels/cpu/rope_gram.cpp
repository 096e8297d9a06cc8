#include <omp.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/rope_sums.h"
#include "kernels/cpu/rope_tile.h"

namespace kvs::cpu {

namespace {

// Tokens per block: pairs inside a block cost kBlock/2 outer products per token, pairs across blocks one (kBlock-fold
// reuse of S). 16 balances the two and keeps a block of 64-dimensional heads in the first-level cache.
constexpr std::size_t kBlock = 16;
constexpr std::size_t kPairs = kBlock * (kBlock + 1) / 2;

/// One thread's memory for the rows of one tile of kLanes chunks. "Group" below is a group of kLanes columns.
struct Workspace {
  Workspace(std::size_t groups, std::size_t heads)
      : a(kBlock * kComponents * groups),
        b(kBlock * kComponents * groups),
        delta(kPairs * groups),
        moment(kLanes * kComponents * kComponents * groups),
        gram(heads * kLanes * groups) {}

  std::vector<Lane> a, b;    // [token of the block, component, group]
  std::vector<Lane> delta;   // [pair of the block, group]
  std::vector<Lane> moment;  // S = Σ_{j of earlier blocks} b bᵀ: [row, component, component', group]
  std::vector<Lane> gram;    // [query head of the group, row, group]
};

/// sum[m][n] = Σ_t x_{m0+m, row}(t) · x_{n, column group}(t), two components m against all n.
inline void block_moment(const Lane* block, std::size_t tokens, std::size_t groups, std::size_t chunk,
                         std::size_t column, std::size_t first_component, Lane (&sum)[2][kComponents]) {
  const double* scalars = reinterpret_cast<const double*>(block);
  for (auto& row : sum)
    for (Lane& lane : row) lane = Lane{};
  for (std::size_t token = 0; token < tokens; ++token) {
    const Lane* columns = block + token * kComponents * groups + column;
    const double* rows = scalars + (token * kComponents + first_component) * groups * kLanes + chunk;
    const double low = rows[0], high = rows[groups * kLanes];
    for (std::size_t n = 0; n < kComponents; ++n) {
      sum[0][n] += low * columns[n * groups];
      sum[1][n] += high * columns[n * groups];
    }
  }
}

/// The rows [tile · kLanes, (tile + 1) · kLanes) and columns from the same chunk on of the Gram matrices of one
/// KV head's query heads. Tiles share nothing, so they run in parallel without waiting for each other.
class GramTile {
 public:
  GramTile(const RopeOperands& in, Workspace& work, std::size_t kv_head, std::size_t tile)
      : in_(in), work_(work), kv_head_(kv_head), tile_(tile), groups_((in.half + kLanes - 1) / kLanes) {
    std::ranges::fill(work.a, Lane{});  // padding chunks stay zero
    std::ranges::fill(work.b, Lane{});
    std::ranges::fill(work.moment, Lane{});
    std::ranges::fill(work.gram, Lane{});
  }

  void run() {
    for (std::size_t first = 0; first < in_.tokens; first += kBlock) {
      const std::size_t count = std::min(kBlock, in_.tokens - first);
      load(first, count, RopeSide::kKey, kv_head_, work_.b);
      for (std::size_t head = 0; head < in_.group; ++head) {
        load(first, count, RopeSide::kQuery, kv_head_ * in_.group + head, work_.a);
        Lane* gram = work_.gram.data() + head * kLanes * groups_;
        if (first > 0) add_earlier_blocks(count, gram);
        add_within_block(count, gram);
      }
      extend_moment(count);
    }
  }

  /// gram[c, c'] += this tile's sums, and the mirror image.
  void store(TensorView<double, 3> gram) const {
    const std::size_t first_row = tile_ * kLanes, last_row = std::min(first_row + kLanes, in_.half);
    for (std::size_t head = 0; head < in_.group; ++head) {
      const auto* sums = reinterpret_cast<const double*>(work_.gram.data() + head * kLanes * groups_);
      const TensorView<double, 2> out = gram.slice(kv_head_ * in_.group + head);
      for (std::size_t row = first_row; row < last_row; ++row) {
        for (std::size_t column = row; column < in_.half; ++column) {
          const double sum = sums[(row - first_row) * groups_ * kLanes + column];
          out(row, column) += sum;
          if (column != row) out(column, row) += sum;
        }
      }
    }
  }

 private:
  void load(std::size_t first, std::size_t count, RopeSide side, std::size_t head, std::vector<Lane>& block) {
    const std::size_t stride = groups_ * kLanes;
    auto* out = reinterpret_cast<double*>(block.data());
    for (std::size_t token = first; token < first + count; ++token, out += kComponents * stride) {
      rope_components(in_, side, head, token, tile_ * kLanes, out, stride, 1);
    }
  }

  Lane* moment_at(std::size_t row, std::size_t component, std::size_t column) {
    return work_.moment.data() + ((row * kComponents + component) * kComponents) * groups_ + column;
  }

  /// Σ_i Σ_{j earlier} δ_c δ_c' = Σ_{m,n} (Σ_i a_{m,c} a_{n,c'}) S_{m,c,n,c'}
  void add_earlier_blocks(std::size_t count, Lane* gram) {
    for (std::size_t row = 0; row < kLanes; ++row) {
      for (std::size_t column = tile_; column < groups_; ++column) {
        Lane total{};
        for (std::size_t m = 0; m < kComponents; m += 2) {
          Lane sum[2][kComponents];
          block_moment(work_.a.data(), count, groups_, tile_ * kLanes + row, column, m, sum);
          const Lane *low = moment_at(row, m, column), *high = moment_at(row, m + 1, column);
          for (std::size_t n = 0; n < kComponents; ++n)
            total += sum[0][n] * low[n * groups_] + sum[1][n] * high[n * groups_];
        }
        gram[row * groups_ + column] += total;
      }
    }
  }

  void extend_moment(std::size_t count) {
    for (std::size_t row = 0; row < kLanes; ++row) {
      for (std::size_t column = tile_; column < groups_; ++column) {
        for (std::size_t m = 0; m < kComponents; m += 2) {
          Lane sum[2][kComponents];
          block_moment(work_.b.data(), count, groups_, tile_ * kLanes + row, column, m, sum);
          Lane *low = moment_at(row, m, column), *high = moment_at(row, m + 1, column);
          for (std::size_t n = 0; n < kComponents; ++n) {
            low[n * groups_] += sum[0][n];
            high[n * groups_] += sum[1][n];
          }
        }
      }
    }
  }

  /// The triangle i ≥ j of a block: δ of every pair, then its outer products.
  void add_within_block(std::size_t count, Lane* gram) {
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j <= i; ++j, ++pairs) {
        const Lane* a = work_.a.data() + i * kComponents * groups_;
        const Lane* b = work_.b.data() + j * kComponents * groups_;
        for (std::size_t column = tile_; column < groups_; ++column) {
          Lane delta{};
          for (std::size_t n = 0; n < kComponents; ++n) delta += a[n * groups_ + column] * b[n * groups_ + column];
          work_.delta[pairs * groups_ + column] = delta;
        }
      }
    }
    const auto* scalars = reinterpret_cast<const double*>(work_.delta.data()) + tile_ * kLanes;
    for (std::size_t column = tile_; column < groups_; ++column) {
      Lane sum[kLanes] = {};
      for (std::size_t pair = 0; pair < pairs; ++pair) {
        const Lane columns = work_.delta[pair * groups_ + column];
        const double* rows = scalars + pair * groups_ * kLanes;
        for (std::size_t row = 0; row < kLanes; ++row) sum[row] += rows[row] * columns;
      }
      for (std::size_t row = 0; row < kLanes; ++row) gram[row * groups_ + column] += sum[row];
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
  const std::size_t groups = (in.half + kLanes - 1) / kLanes;
  // Memory is taken here: an exception must not leave a parallel region.
  std::vector<Workspace> work(static_cast<std::size_t>(omp_get_max_threads()), Workspace(groups, in.group));
  // The first tiles have the most columns, so they are handed out first.
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t task = 0; task < groups * in.kv_heads; ++task) {
    GramTile tile(in, work[static_cast<std::size_t>(omp_get_thread_num())], task % in.kv_heads, task / in.kv_heads);
    tile.run();
    tile.store(gram);
  }
}

}  // namespace kvs::cpu
