#include "kernels/cpu/simd/functions.h"

// The sums of kernels/cpu/rope_gram.cpp. Lane: eight doubles, one register of AVX-512 or two of AVX2.
namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

constexpr std::size_t kComponents = 4;  // as in kernels/rope_operands.h
using Lane = double __attribute__((vector_size(kDoubles * sizeof(double))));

/// GCC and Clang let a double alias the elements of such a vector.
const Lane* lanes(const double* from) { return reinterpret_cast<const Lane*>(from); }
Lane* lanes(double* from) { return reinterpret_cast<Lane*>(from); }

/// sum[m][n] = Σ_t x_{m0+m, row}(t) · x_{n, column group}(t), two components m against all n.
inline void block_moment(const GramBlock& in, const double* block, std::size_t chunk, std::size_t column,
                         std::size_t first_component, Lane (&sum)[2][kComponents]) {
  for (auto& row : sum)
    for (Lane& lane : row) lane = Lane{};
  for (std::size_t token = 0; token < in.tokens; ++token) {
    const Lane* columns = lanes(block) + token * kComponents * in.groups + column;
    const double* rows = block + (token * kComponents + first_component) * in.groups * kDoubles + chunk;
    const double low = rows[0], high = rows[in.groups * kDoubles];
    for (std::size_t n = 0; n < kComponents; ++n) {
      sum[0][n] += low * columns[n * in.groups];
      sum[1][n] += high * columns[n * in.groups];
    }
  }
}

Lane* moment_at(const GramBlock& in, std::size_t row, std::size_t component, std::size_t column) {
  return lanes(in.moment) + (row * kComponents + component) * kComponents * in.groups + column;
}

}  // namespace

/// Σ_i Σ_{j earlier} δ_c δ_c' = Σ_{m,n} (Σ_i a_{m,c} a_{n,c'}) S_{m,c,n,c'}
void add_earlier_blocks(const GramBlock& in) noexcept {
  for (std::size_t row = 0; row < kDoubles; ++row) {
    for (std::size_t column = in.first_group; column < in.groups; ++column) {
      Lane total{};
      for (std::size_t m = 0; m < kComponents; m += 2) {
        Lane sum[2][kComponents];
        block_moment(in, in.queries, in.first_group * kDoubles + row, column, m, sum);
        const Lane *low = moment_at(in, row, m, column), *high = moment_at(in, row, m + 1, column);
        for (std::size_t n = 0; n < kComponents; ++n)
          total += sum[0][n] * low[n * in.groups] + sum[1][n] * high[n * in.groups];
      }
      lanes(in.gram)[row * in.groups + column] += total;
    }
  }
}

void extend_moment(const GramBlock& in) noexcept {
  for (std::size_t row = 0; row < kDoubles; ++row) {
    for (std::size_t column = in.first_group; column < in.groups; ++column) {
      for (std::size_t m = 0; m < kComponents; m += 2) {
        Lane sum[2][kComponents];
        block_moment(in, in.keys, in.first_group * kDoubles + row, column, m, sum);
        Lane *low = moment_at(in, row, m, column), *high = moment_at(in, row, m + 1, column);
        for (std::size_t n = 0; n < kComponents; ++n) {
          low[n * in.groups] += sum[0][n];
          high[n * in.groups] += sum[1][n];
        }
      }
    }
  }
}

/// The triangle i ≥ j of a block: δ of every pair, then its outer products.
void add_within_block(const GramBlock& in) noexcept {
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < in.tokens; ++i) {
    for (std::size_t j = 0; j <= i; ++j, ++pairs) {
      const Lane* a = lanes(in.queries) + i * kComponents * in.groups;
      const Lane* b = lanes(in.keys) + j * kComponents * in.groups;
      for (std::size_t column = in.first_group; column < in.groups; ++column) {
        Lane delta{};
        for (std::size_t n = 0; n < kComponents; ++n) delta += a[n * in.groups + column] * b[n * in.groups + column];
        lanes(in.deltas)[pairs * in.groups + column] = delta;
      }
    }
  }
  const double* scalars = in.deltas + in.first_group * kDoubles;
  for (std::size_t column = in.first_group; column < in.groups; ++column) {
    Lane sum[kDoubles] = {};
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const Lane columns = lanes(in.deltas)[pair * in.groups + column];
      const double* rows = scalars + pair * in.groups * kDoubles;
      for (std::size_t row = 0; row < kDoubles; ++row) sum[row] += rows[row] * columns;
    }
    for (std::size_t row = 0; row < kDoubles; ++row) lanes(in.gram)[row * in.groups + column] += sum[row];
  }
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
