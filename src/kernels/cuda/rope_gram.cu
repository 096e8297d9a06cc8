#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_algebra.h"
#include "kernels/cuda/rope_sums.h"

namespace kvs::cuda {
namespace {

// Tokens per block. Pairs across blocks go through moments of (4 C)² values per block, pairs inside one through kBlock²
// δ per block and chunk: at C = 64 the two move about the same number of bytes.
constexpr std::size_t kBlock = 32;
constexpr std::size_t kMostBlocks = 128;  // taken at a time: bounds the memory to 2 · kMostBlocks · (4 C)² doubles

/// From the sums of each block to the sums of all blocks before it, `carry` being those before the first.
__global__ void prefix_blocks(double* moments, std::size_t size, std::size_t blocks, double* carry) {
  const std::size_t i = global_index();
  if (i >= size) return;
  double before = carry[i];
  for (std::size_t block = 0; block < blocks; ++block) {
    const double own = moments[block * size + i];
    moments[block * size + i] = before;
    before += own;
  }
  carry[i] = before;
}

/// delta[block, i, j, chunk] of the pairs i ≥ j of each block, 0 for the others.
__global__ void pairs_within(const double* a, const double* b, std::size_t half, std::size_t count, double* delta) {
  const std::size_t at = global_index();
  if (at >= count) return;
  const std::size_t chunk = at % half, j = at / half % kBlock, i = at / half / kBlock % kBlock;
  const std::size_t block = at / half / kBlock / kBlock;
  double sum = 0;
  if (j <= i) {
    const double* const left = a + (block * kBlock + i) * kComponents * half + chunk;
    const double* const right = b + (block * kBlock + j) * kComponents * half + chunk;
    for (std::size_t m = 0; m < kComponents; ++m) sum += left[m * half] * right[m * half];
  }
  delta[at] = sum;
}

/// gram[block, c, c'] += Σ_{m,n} moment_a[block, m c, n c'] · moment_b[block, m c, n c']: the pairs across blocks.
__global__ void contract_moments(const double* moment_a, const double* moment_b, std::size_t half, std::size_t count,
                                 double* gram) {
  const std::size_t at = global_index();
  if (at >= count) return;
  const std::size_t column = at % half, row = at / half % half, block = at / half / half;
  const std::size_t side = kComponents * half, first = block * side * side;
  double sum = 0;
  for (std::size_t m = 0; m < kComponents; ++m) {
    for (std::size_t n = 0; n < kComponents; ++n) {
      const std::size_t i = first + (m * half + row) * side + n * half + column;
      sum += moment_a[i] * moment_b[i];
    }
  }
  gram[at] += sum;
}

__global__ void sum_blocks(const double* gram, std::size_t size, std::size_t blocks, double* total) {
  const std::size_t i = global_index();
  if (i >= size) return;
  double sum = 0;
  for (std::size_t block = 0; block < blocks; ++block) sum += gram[block * size + i];
  total[i] += sum;
}

/// out[block] = Σ_rows x xᵀ over `rows` rows of `width` per block.
void batched_gram(const Context& context, const double* x, std::size_t rows, std::size_t width, std::size_t blocks,
                  double* out) {
  const double one = 1, zero = 0;
  const int n = to_int(width);
  check_cublas(
      cublasDgemmStridedBatched(context.blas(), CUBLAS_OP_N, CUBLAS_OP_T, n, n, to_int(rows), &one, x, n,
                                static_cast<long long>(rows * width), x, n, static_cast<long long>(rows * width), &zero,
                                out, n, static_cast<long long>(width * width), to_int(blocks)),
      "cublasDgemmStridedBatched");
}

/// Device memory of a run, for `blocks` blocks at a time.
struct Workspace {
  Workspace(const Context& context, const RopeOperands& in, std::size_t blocks)
      : a(context, blocks * kBlock * in.components()),
        b(context, a.size()),
        moment_a(context, blocks * in.components() * in.components()),
        moment_b(context, moment_a.size()),
        carry(context, in.components() * in.components()),
        delta(context, blocks * kBlock * kBlock * in.half),
        gram(context, blocks * in.half * in.half),
        total(context, in.query_heads * in.half * in.half) {
    context.clear(total.data(), total.size() * sizeof(double));
  }
  DeviceArray<double> a, b, moment_a, moment_b, carry, delta, gram, total;
};

/// Adds what the queries of blocks [first, first + blocks) give; `work` holds the moments of the keys before each.
void add_queries(const Context& context, const RopeOperands& in, std::size_t head, std::size_t first,
                 std::size_t blocks, const Workspace& work) {
  const std::size_t size = in.half * in.half, pairs = blocks * kBlock * kBlock * in.half;
  fill_components(context, in, in.query(head), -1.0, first * kBlock, blocks * kBlock, work.a.data());
  batched_gram(context, work.a.data(), kBlock, in.components(), blocks, work.moment_a.data());
  launch_kernel("pairs_within", pairs_within, {blocks_for(pairs)}, context.stream(), work.a.data(), work.b.data(),
                in.half, pairs, work.delta.data());
  batched_gram(context, work.delta.data(), kBlock * kBlock, in.half, blocks, work.gram.data());
  launch_kernel("contract_moments", contract_moments, {blocks_for(blocks * size)}, context.stream(),
                work.moment_a.data(), work.moment_b.data(), in.half, blocks * size, work.gram.data());
  launch_kernel("sum_blocks", sum_blocks, {blocks_for(size)}, context.stream(), work.gram.data(), size, blocks,
                work.total.data() + head * size);
}

}  // namespace

void accumulate_rope_gram(const Context& context, const RopeOperands& in, TensorView<double, 3> gram) {
  if (gram.shape() != std::array{in.query_heads, in.half, in.half})
    throw Error(ErrorCode::kInternal, "rope gram", "the sum's shape is not [query_head, chunk, chunk]");
  if (in.tokens == 0 || in.half == 0) return;
  const std::size_t all = (in.tokens + kBlock - 1) / kBlock, step = std::min(all, kMostBlocks);
  const std::size_t moment = in.components() * in.components();
  const Workspace work(context, in, step);
  for (std::size_t head = 0; head < in.kv_heads; ++head) {
    context.clear(work.carry.data(), moment * sizeof(double));
    for (std::size_t first = 0; first < all; first += step) {
      const std::size_t blocks = std::min(step, all - first);
      fill_components(context, in, in.key(head), 1.0, first * kBlock, blocks * kBlock, work.b.data());
      batched_gram(context, work.b.data(), kBlock, in.components(), blocks, work.moment_b.data());
      launch_kernel("prefix_blocks", prefix_blocks, {blocks_for(moment)}, context.stream(), work.moment_b.data(),
                    moment, blocks, work.carry.data());
      for (std::size_t i = 0; i < in.group; ++i) add_queries(context, in, head * in.group + i, first, blocks, work);
    }
  }
  const std::vector<double> total = work.total.to_host();
  for (std::size_t i = 0; i < total.size(); ++i) gram.data()[i] += total[i];
}

}  // namespace kvs::cuda
