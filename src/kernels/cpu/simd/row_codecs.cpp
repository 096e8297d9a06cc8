// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/codecs/rows.h"
#include "kernels/cpu/simd/functions.h"
#include "kernels/cpu/simd/trellis_rows.h"

namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

/// Calls run(values). The size is a constant for nearly all groups, so that loops over a group need no remainder code.
template <class Run>
void with_size(std::size_t values, Run run) {
  switch (values) {
    case 16:
      return run(std::integral_constant<std::size_t, 16>{});
    case 32:
      return run(std::integral_constant<std::size_t, 32>{});
    case 64:
      return run(std::integral_constant<std::size_t, 64>{});
    case 128:
      return run(std::integral_constant<std::size_t, 128>{});
    default:
      return run(values);
  }
}

/// Returns true if rows are contiguous whole groups.
bool are_groups(const CodedRows& coded) {
  return !coded.format.across_tokens && coded.format.split == 0 &&
         coded.values % group_of(coded.format, coded.values).values == 0;
}

constexpr std::size_t kMaxRun = 256;  // largest run that runs_from_basis() accepts
using Eight = float __attribute__((vector_size(32)));

/// Returns true if rows are taken out of their basis run by run.
bool from_basis_by_runs(const CodedRows& coded) {
  const std::size_t run = coded.format.hadamard;
  return run >= 8 && run <= kMaxRun && coded.values % run == 0 &&
         (coded.format.adjacent_pairs == 0 || run == coded.values);
}

/// The butterflies of a Hadamard transform whose two values are in one vector.
Eight butterflies(Eight x) {
  constexpr Eight kFours{1, 1, 1, 1, -1, -1, -1, -1}, kTwos{1, 1, -1, -1, 1, 1, -1, -1},
      kOnes{1, -1, 1, -1, 1, -1, 1, -1};
  x = __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3) + x * kFours;
  x = __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5) + x * kTwos;
  return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6) + x * kOnes;
}

/// Takes a run of `n` values out of its basis.
template <class Size>
void run_from_basis(const codecs::RowBasis& basis, Size n, float* x) {
  const float factor = basis.from_basis_factor();
  Eight side[kMaxRun / 8];
  const std::size_t vectors = n / 8;
  std::memcpy(side, x, n * sizeof(float));
  codecs::hadamard_butterflies(side, vectors, vectors);
  for (std::size_t i = 0; i < vectors; ++i) side[i] = butterflies(side[i]) * factor;
  float y[kMaxRun];
  std::memcpy(y, side, n * sizeof(float));
  if (basis.format.signs)
    for (std::size_t i = 0; i < n; ++i) y[i] *= codecs::sign_at(i);
  const std::size_t pairs = std::min<std::size_t>(basis.format.adjacent_pairs, n) / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    x[i] = y[2 * i];  // basis.place()
    x[i + pairs] = y[2 * i + 1];
  }
  std::memcpy(x + 2 * pairs, y + 2 * pairs, (n - 2 * pairs) * sizeof(float));
}

/// Equals codecs::RowBasis::from_basis() for rows with from_basis_by_runs(), with the same sums.
void runs_from_basis(const CodedRows& coded) {
  const std::size_t count = coded.rows * coded.values;
  const codecs::RowBasis basis{coded.format, coded.format.hadamard};
  with_size(coded.format.hadamard, [&](auto n) {
    for (std::size_t at = 0; at < count; at += n) run_from_basis(basis, n, coded.x + at);
  });
}

template <class Codec>
void decode_all(const CodedRows& coded) {
  const RowGroup group = group_of(coded.format, coded.values);
  const std::size_t count = coded.rows * coded.values;
  with_size(group.values, [&](auto values) {
    const std::uint8_t* from = coded.bytes;
    for (std::size_t at = 0; at < count; at += values, from += group.bytes) Codec::decode(from, values, coded.x + at);
  });
  if (coded.format.is_scaled() && coded.tables.scale != 1)
    for (std::size_t at = 0; at < count; ++at) coded.x[at] *= coded.tables.scale;
}

}  // namespace

void encode_rows(const CodedRows& coded) noexcept {
  const std::size_t step = rows_of_unit(coded.format), bytes = rows_bytes(coded.format, coded.values, step);
  if (coded.format.kind == RowKind::kTrellis) return encode_trellis(coded, bytes);
  codecs::with_codec(coded.format.kind, [&](auto codec) {
    for (std::size_t row = 0; row < coded.rows; row += step)
      codecs::encode_unit<decltype(codec)>(coded.format, coded.values, coded.tables, coded.x + row * coded.values,
                                           coded.bytes + row / step * bytes, coded.scratch);
  });
}

void decode_rows(const CodedRows& coded) noexcept {
  const std::size_t step = rows_of_unit(coded.format), bytes = rows_bytes(coded.format, coded.values, step);
  if (coded.format.kind == RowKind::kTrellis) return decode_trellis(coded, bytes);
  codecs::with_codec(coded.format.kind, [&](auto codec) {
    if constexpr (requires { decltype(codec)::decode(coded.bytes, coded.values, coded.x); }) {
      const bool stays = coded.in_basis || !coded.format.turns();
      if (are_groups(coded) && (stays || from_basis_by_runs(coded))) {
        decode_all<decltype(codec)>(coded);
        if (!stays) runs_from_basis(coded);
        return;
      }
    }
    for (std::size_t row = 0; row < coded.rows; row += step)
      codecs::decode_unit<decltype(codec)>(coded.format, coded.values, coded.tables, coded.in_basis,
                                           coded.bytes + row / step * bytes, coded.x + row * coded.values,
                                           coded.scratch);
  });
}

void change_row_basis(const CodedRows& coded, BasisChange change) noexcept {
  for (std::size_t row = 0; row < coded.rows; ++row)
    codecs::change_basis(coded.format, coded.values, change, coded.x + row * coded.values, coded.scratch);
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
