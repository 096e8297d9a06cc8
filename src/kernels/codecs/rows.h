// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/codecs/kivi.h"
#include "kernels/codecs/llama_cpp.h"
#include "kernels/codecs/plain.h"
#include "kernels/codecs/trellis.h"
#include "kernels/codecs/vllm.h"

// Encoding and decoding of rows.
namespace kvs::codecs {
namespace {  // NOLINT: see scalars.h

/// Calls run(codec) with the codec of `kind`.
template <class Run>
void with_codec(RowKind kind, Run run) {
  switch (kind) {
    case RowKind::kF32:
      return run(PlainF32{});
    case RowKind::kF16:
      return run(Half{});
    case RowKind::kBF16:
      return run(Bfloat{});
    case RowKind::kQ8_0:
      return run(Q8_0{});
    case RowKind::kQ5_1:
      return run(AffineBlock<5>{});
    case RowKind::kQ5_0:
      return run(SymmetricBlock<5>{});
    case RowKind::kQ4_1:
      return run(AffineBlock<4>{});
    case RowKind::kQ4_0:
      return run(SymmetricBlock<4>{});
    case RowKind::kIq4Nl:
      return run(Iq4Nl{});
    case RowKind::kE4m3:
      return run(E4m3{});
    case RowKind::kE5m2:
      return run(E5m2{});
    case RowKind::kInt8Row:
      return run(Int8Row{});
    case RowKind::kE4m3Row:
      return run(E4m3Row{});
    case RowKind::kInt4Row:
      return run(Int4Row{});
    case RowKind::kTurboKey4:
      return run(TurboKey<4>{});
    case RowKind::kTurboKey3:
      return run(TurboKey<3>{});
    case RowKind::kTurboValue4:
      return run(TurboValue<4>{});
    case RowKind::kTurboValue3:
      return run(TurboValue<3>{});
    case RowKind::kKivi4:
      return run(Stepped<4, 0>{});
    case RowKind::kKivi2:
      return run(Stepped<2, 0>{});
    case RowKind::kQuarot4:
      return run(Stepped<4, 1>{});
    case RowKind::kNvFp4:
      return run(NvFp4{});
    case RowKind::kTrellis:
      return run(Trellis{});
  }
}

/// The butterflies of a Hadamard transform of each run of n values. Value: a float, or a vector of floats.
template <class Value>
KVS_CODEC void hadamard_butterflies(Value* x, std::size_t count, std::size_t n) noexcept {
  for (std::size_t half = n / 2; half > 0; half /= 2)
    for (std::size_t first = 0; first < count; first += 2 * half)
      for (std::size_t i = first; i < first + half; ++i) {
        const Value a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
}

/// x ← factor · √n · H x for each run of n values. H is the orthonormal Sylvester–Walsh–Hadamard matrix.
KVS_CODEC void rotate_hadamard(float* x, std::size_t count, std::size_t n, float factor) noexcept {
  hadamard_butterflies(x, count, n);
  for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
}

/// Returns the ±1 by which int4_per_token_head multiplies a value of a run: torch.bernoulli(0.5) with seed 0x9E3779B9.
KVS_CODEC float sign_at(std::size_t index) noexcept {
  constexpr std::uint32_t kSigns[8] = {0x6573590dU, 0x808035b1U, 0xa6443d6cU, 0x6b7f5438U,
                                       0x4aa48b81U, 0xabafc441U, 0x320b9848U, 0xfa2043a0U};
  return (kSigns[index / 32 % 8] >> (index % 32)) & 1U ? 1.0F : -1.0F;
}

/// The basis in which a row, or one of its two parts, is encoded: permutation, signs, rotation by H. The functions
/// to_basis() and from_basis() are linear, so queries can be transformed instead of all the keys that they meet.
struct RowBasis {
  RowFormat format;
  std::size_t count;

  KVS_CODEC bool rotates() const noexcept { return format.hadamard > 0 && count % format.hadamard == 0; }
  KVS_CODEC std::size_t place(std::size_t i) const noexcept {
    return i < format.adjacent_pairs ? i / 2 + i % 2 * (format.adjacent_pairs / 2) : i;
  }
  KVS_CODEC float run() const noexcept { return static_cast<float>(format.hadamard); }
  /// int4_per_token_head keeps the factor √n.
  KVS_CODEC float to_basis_factor() const noexcept { return format.signs ? 1 : 1 / std::sqrt(run()); }
  KVS_CODEC float from_basis_factor() const noexcept { return format.signs ? 1 / run() : 1 / std::sqrt(run()); }

  KVS_CODEC void to_basis(const float* x, float* y, float factor) const noexcept {
    for (std::size_t i = 0; i < count; ++i) y[i] = x[place(i)];
    if (format.signs)
      for (std::size_t i = 0; i < count; ++i) y[i] *= sign_at(i % format.hadamard);
    if (rotates()) rotate_hadamard(y, count, format.hadamard, factor);
  }
  /// Overwrites y. y may equal x if the basis does not permute.
  KVS_CODEC void from_basis(float* y, float* x) const noexcept {
    if (rotates()) rotate_hadamard(y, count, format.hadamard, from_basis_factor());
    if (format.signs)
      for (std::size_t i = 0; i < count; ++i) y[i] *= sign_at(i % format.hadamard);
    if (y != x)
      for (std::size_t i = 0; i < count; ++i) x[place(i)] = y[i];
  }
};

/// Transforms a row. kQueryToBasis: the products of the result with rows in the basis equal the products of x with the
/// original rows (the transpose of from_basis()). kToBasis: into the basis. kFromBasis: out of the basis.
KVS_CODEC void change_basis(const RowFormat& format, std::size_t values, BasisChange change, float* x,
                            float* scratch) noexcept {
  const std::size_t counts[2] = {format.split, values - format.split};
  for (const std::size_t count : counts) {
    const RowBasis basis{format, count};
    std::memcpy(scratch, x, count * sizeof(float));
    if (change == BasisChange::kFromBasis)
      basis.from_basis(scratch, x);
    else
      basis.to_basis(scratch, x, change == BasisChange::kToBasis ? basis.to_basis_factor() : basis.from_basis_factor());
    x += count;
  }
}

template <class Codec>
KVS_CODEC void encode_groups(const RowFormat& format, std::size_t values, float scale, const float* x, std::uint8_t* to,
                             float* scratch) noexcept {
  if constexpr (requires { Codec::encode_across(x, values, values, to, scratch); })
    if (format.across_tokens) return Codec::encode_across(x, format.group, values, to, scratch);
  const std::size_t counts[2] = {format.split, values - format.split};
  for (const std::size_t count : counts) {
    if (count == 0) continue;
    const RowGroup group = group_of(format, count);
    const RowBasis basis{format, count};
    basis.to_basis(x, scratch, basis.to_basis_factor());
    if (format.is_scaled())
      for (std::size_t i = 0; i < count; ++i) scratch[i] /= scale;
    for (std::size_t i = count; i % group.values != 0; ++i) scratch[i] = 0;
    for (std::size_t i = 0; i < count; i += group.values, to += group.bytes)
      Codec::encode(scratch + i, group.values, to);
    x += count;
  }
}

/// @param x  [rows_of_unit, values]
template <class Codec>
KVS_CODEC void encode_unit(const RowFormat& format, std::size_t values, const RowTables& tables, const float* x,
                           std::uint8_t* to, float* scratch) noexcept {
  if constexpr (requires { Codec::encode_row(tables, values, x, to, values, scratch); }) {
    Codec::encode_row(tables, values, x, to, group_of(format, values).bytes, scratch);
  } else {
    encode_groups<Codec>(format, values, tables.scale, x, to, scratch);
  }
}

template <class Codec>
KVS_CODEC void decode_groups(const RowFormat& format, std::size_t values, float scale, bool in_basis,
                             const std::uint8_t* from, float* x, float* scratch) noexcept {
  if constexpr (requires { Codec::decode_across(from, values, values, x, scratch); })
    if (format.across_tokens) return Codec::decode_across(from, format.group, values, x, scratch);
  const std::size_t counts[2] = {format.split, values - format.split};
  for (const std::size_t count : counts) {
    if (count == 0) continue;
    const RowGroup group = group_of(format, count);
    float* const y = (format.adjacent_pairs > 0 && !in_basis) || count % group.values != 0 ? scratch : x;
    for (std::size_t i = 0; i < count; i += group.values, from += group.bytes) Codec::decode(from, group.values, y + i);
    if (format.is_scaled())
      for (std::size_t i = 0; i < count; ++i) y[i] *= scale;
    if (!in_basis)
      RowBasis{format, count}.from_basis(y, x);
    else if (y != x)
      std::memcpy(x, y, count * sizeof(float));
    x += count;
  }
}

/// @param in_basis  x becomes the row in its RowBasis
template <class Codec>
KVS_CODEC void decode_unit(const RowFormat& format, std::size_t values, const RowTables& tables, bool in_basis,
                           const std::uint8_t* from, float* x, float* scratch) noexcept {
  if constexpr (requires { Codec::decode_row(tables, values, from, x); }) {
    Codec::decode_row(tables, values, from, x);
  } else {
    decode_groups<Codec>(format, values, tables.scale, in_basis, from, x, scratch);
  }
}

}  // namespace
}  // namespace kvs::codecs
