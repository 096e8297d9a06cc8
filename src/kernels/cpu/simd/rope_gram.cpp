// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/functions.h"

// The sums of kernels/cpu/rope_gram.cpp. A group of kDoubles columns is one AVX-512 register or two AVX2 registers.
// "column" below means one register.
namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

constexpr std::size_t kComponents = 4;                                               // as in kernels/rope_operands.h
constexpr std::size_t kRegisters = kDoubles * sizeof(double) / sizeof(DoubleLanes);  // per group

/// GCC and Clang allow a double to alias the elements of such a vector.
const DoubleLanes* lanes(const double* from) { return reinterpret_cast<const DoubleLanes*>(from); }
DoubleLanes* lanes(double* from) { return reinterpret_cast<DoubleLanes*>(from); }

/// The columns of a block. Its rows use columns [first, end).
struct Columns {
  explicit Columns(const GramBlock& in) : first(in.first_group * kRegisters), end(in.groups * kRegisters) {}
  std::size_t first, end;
};

/// sum[m][n] = Σ_t x_{m0+m, row}(t) · x_{n, column group}(t), for two components m and all n.
inline void block_moment(const GramBlock& in, const double* block, std::size_t chunk, std::size_t column,
                         std::size_t first_component, DoubleLanes (&sum)[2][kComponents]) {
  const std::size_t columns = Columns(in).end, stride = in.groups * kDoubles;
  for (auto& row : sum)
    for (DoubleLanes& lane : row) lane = DoubleLanes{};
  for (std::size_t token = 0; token < in.tokens; ++token) {
    const DoubleLanes* values = lanes(block) + token * kComponents * columns + column;
    const double* rows = block + (token * kComponents + first_component) * stride + chunk;
    const double low = rows[0], high = rows[stride];
    for (std::size_t n = 0; n < kComponents; ++n) {
      sum[0][n] += low * values[n * columns];
      sum[1][n] += high * values[n * columns];
    }
  }
}

DoubleLanes* moment_at(const GramBlock& in, std::size_t row, std::size_t component, std::size_t column) {
  return lanes(in.moment) + (row * kComponents + component) * kComponents * Columns(in).end + column;
}

}  // namespace

/// Σ_i Σ_{j earlier} δ_c δ_c' = Σ_{m,n} (Σ_i a_{m,c} a_{n,c'}) S_{m,c,n,c'}
void add_earlier_blocks(const GramBlock& in) noexcept {
  const Columns columns(in);
  for (std::size_t row = 0; row < kDoubles; ++row) {
    for (std::size_t column = columns.first; column < columns.end; ++column) {
      DoubleLanes total{};
      for (std::size_t m = 0; m < kComponents; m += 2) {
        DoubleLanes sum[2][kComponents];
        block_moment(in, in.queries, in.first_group * kDoubles + row, column, m, sum);
        const DoubleLanes *low = moment_at(in, row, m, column), *high = moment_at(in, row, m + 1, column);
        for (std::size_t n = 0; n < kComponents; ++n)
          total += sum[0][n] * low[n * columns.end] + sum[1][n] * high[n * columns.end];
      }
      lanes(in.gram)[row * columns.end + column] += total;
    }
  }
}

void extend_moment(const GramBlock& in) noexcept {
  const Columns columns(in);
  for (std::size_t row = 0; row < kDoubles; ++row) {
    for (std::size_t column = columns.first; column < columns.end; ++column) {
      for (std::size_t m = 0; m < kComponents; m += 2) {
        DoubleLanes sum[2][kComponents];
        block_moment(in, in.keys, in.first_group * kDoubles + row, column, m, sum);
        DoubleLanes *low = moment_at(in, row, m, column), *high = moment_at(in, row, m + 1, column);
        for (std::size_t n = 0; n < kComponents; ++n) {
          low[n * columns.end] += sum[0][n];
          high[n * columns.end] += sum[1][n];
        }
      }
    }
  }
}

/// Adds the triangle i ≥ j of a block: δ of every pair, then its outer products.
void add_within_block(const GramBlock& in) noexcept {
  const Columns columns(in);
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < in.tokens; ++i) {
    for (std::size_t j = 0; j <= i; ++j, ++pairs) {
      const DoubleLanes* a = lanes(in.queries) + i * kComponents * columns.end;
      const DoubleLanes* b = lanes(in.keys) + j * kComponents * columns.end;
      for (std::size_t column = columns.first; column < columns.end; ++column) {
        DoubleLanes delta{};
        for (std::size_t n = 0; n < kComponents; ++n)
          delta += a[n * columns.end + column] * b[n * columns.end + column];
        lanes(in.deltas)[pairs * columns.end + column] = delta;
      }
    }
  }
  const double* scalars = in.deltas + in.first_group * kDoubles;
  for (std::size_t column = columns.first; column < columns.end; ++column) {
    DoubleLanes sum[kDoubles] = {};
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const DoubleLanes delta = lanes(in.deltas)[pair * columns.end + column];
      const double* rows = scalars + pair * in.groups * kDoubles;
      for (std::size_t row = 0; row < kDoubles; ++row) sum[row] += rows[row] * delta;
    }
    for (std::size_t row = 0; row < kDoubles; ++row) lanes(in.gram)[row * columns.end + column] += sum[row];
  }
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
