// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define KVS_HOST_DEVICE __host__ __device__
#else
#define KVS_HOST_DEVICE
#endif

namespace kvs::inline kernels {

/// The coding of a row of values, as in the caches of inference engines. docs/stores.md: arithmetic and source of each.
enum class RowKind : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  // llama.cpp: blocks of 32 values
  kQ8_0,
  kQ5_1,
  kQ5_0,
  kQ4_1,
  kQ4_0,
  kIq4Nl,
  // vLLM: fp8 with given scales; one scale per row; TurboQuant's keys and values
  kE4m3,
  kE5m2,
  kInt8Row,
  kE4m3Row,
  kInt4Row,
  kTurboKey4,
  kTurboKey3,
  kTurboValue4,
  kTurboValue3,
  // KIVI: groups with a minimum and a step. QuaRot: the same coding over a whole row
  kKivi4,
  kKivi2,
  kQuarot4,
  // NVFP4: blocks of 16 values with an e4m3 scale each, and a given scale
  kNvFp4,
  // ours: trellis-coded values with unequal rates (codecs/trellis.h)
  kTrellis
};

/// The layout of rows in memory and the meaning of their bytes.
struct RowFormat {
  RowKind kind = RowKind::kF32;
  bool across_tokens = false;  // KIVI's keys: a group is one channel of `group` tokens, which are stored as one unit
  /// First step: of the row's first n values, RoPE's channels (c, c + n/2) become adjacent. 0: no step.
  std::uint32_t adjacent_pairs = 0;
  bool signs = false;          // int4_per_token_head: fixed signs multiply the values before the rotation
  std::uint32_t group = 0;     // KIVI: values of a group; kTrellis: bits of a row
  std::uint32_t hadamard = 0;  // run length of the rotation before coding: a power of two that divides the row, or 0
  std::uint32_t split = 0;  // values [0, split) and the rest are separate rows, each padded with zeros to whole blocks

  constexpr bool is_plain() const noexcept { return kind == RowKind::kF32; }
  /// Returns true if rows are divided by a given scale of their head before they are encoded.
  constexpr bool is_scaled() const noexcept {
    return kind == RowKind::kE4m3 || kind == RowKind::kE5m2 || kind == RowKind::kNvFp4;
  }
  /// Returns true if rows are encoded in another basis.
  constexpr bool turns() const noexcept { return adjacent_pairs > 0 || signs || hadamard > 0; }
  friend constexpr bool operator==(const RowFormat&, const RowFormat&) = default;
};

/// A group of values that is encoded by itself, and its bytes.
struct RowGroup {
  std::size_t values, bytes;
};

/// @param values  number of values of a row, or of one of its two parts
KVS_HOST_DEVICE constexpr RowGroup group_of(const RowFormat& format, std::size_t values) noexcept {
  const std::size_t group = format.group;
  switch (format.kind) {
    case RowKind::kF32:
      return {values, 4 * values};
    case RowKind::kF16:
    case RowKind::kBF16:
      return {values, 2 * values};
    case RowKind::kQ8_0:
      return {32, 34};
    case RowKind::kQ5_1:
      return {32, 24};
    case RowKind::kQ5_0:
      return {32, 22};
    case RowKind::kQ4_1:
      return {32, 20};
    case RowKind::kQ4_0:
    case RowKind::kIq4Nl:
      return {32, 18};
    case RowKind::kE4m3:
    case RowKind::kE5m2:
      return {values, values};
    case RowKind::kInt8Row:
    case RowKind::kE4m3Row:
      return {values, values + 4};
    case RowKind::kInt4Row:
    case RowKind::kTurboValue4:
    case RowKind::kQuarot4:
      return {values, values / 2 + 4};
    case RowKind::kTurboKey4:
      return {values, values / 2 + 2};
    case RowKind::kTurboKey3:
      return {values, values / 8 * 3 + 2};
    case RowKind::kTurboValue3:
      return {values, values / 8 * 3 + 4};
    case RowKind::kKivi4:
      return {group, group / 2 + 4};
    case RowKind::kKivi2:
      return {group, group / 4 + 4};
    case RowKind::kNvFp4:
      return {16, 9};
    case RowKind::kTrellis:
      return {values, 2 + (group + 7) / 8};
  }
  return {};
}

/// Returns the bytes of `values` values of one row, or of one of its parts.
KVS_HOST_DEVICE constexpr std::size_t part_bytes(const RowFormat& format, std::size_t values) noexcept {
  const RowGroup group = group_of(format, values);
  return values == 0 ? 0 : (values + group.values - 1) / group.values * group.bytes;
}

/// Returns the bytes of `rows` rows of `values` values each. Units of several rows count as whole units.
KVS_HOST_DEVICE constexpr std::size_t rows_bytes(const RowFormat& format, std::size_t values,
                                                 std::size_t rows) noexcept {
  if (format.across_tokens) {
    const RowGroup group = group_of(format, format.group);
    return (rows + group.values - 1) / group.values * values * group.bytes;
  }
  return rows * (part_bytes(format, format.split) + part_bytes(format, values - format.split));
}

/// Coding of a value of a kTrellis row. A row's tables are books [bits 0 … 8][state] and a TrellisValue for each value.
struct TrellisValue {
  float offset = 0, scale = 1;  // the coded value is (x − offset) / scale, which has unit variance
  float weight = 1;             // weight of its squared error, at most 1
  float bits = 0;               // 0 … 8
};
constexpr std::size_t kTrellisBooks = std::size_t{9} * 256;

/// The tables of one head's rows, in addition to their bytes.
struct RowTables {
  float scale = 1;                // of RowFormat::is_scaled()
  const float* books = nullptr;   // of kTrellis
  const float* values = nullptr;  // of kTrellis: TrellisValue of each value
};
/// @param scales  StoredRows::scales, or null
KVS_HOST_DEVICE constexpr RowTables tables_of(const RowFormat& format, const float* scales, std::size_t values,
                                              std::size_t head) noexcept {
  if (scales == nullptr) return {};
  if (format.kind == RowKind::kTrellis) return {1, scales, scales + kTrellisBooks + 4 * values * head};
  return {scales[head], nullptr, nullptr};
}

/// Returns the number of rows in a unit, which is encoded by itself: 1, or format.group tokens stored together.
KVS_HOST_DEVICE constexpr std::size_t rows_of_unit(const RowFormat& format) noexcept {
  return format.across_tokens ? format.group : 1;
}
/// Returns the number of scratch floats that encoding or decoding a unit needs.
KVS_HOST_DEVICE constexpr std::size_t unit_scratch(const RowFormat& format, std::size_t values) noexcept {
  if (format.kind == RowKind::kTrellis) return 512 + 32 * values;
  return format.across_tokens ? 2 * (format.group + values) : values + 64;
}

/// Transforms a row into the basis of the encoding, out of it, or so that it can be multiplied with encoded rows.
enum class BasisChange : std::uint8_t { kToBasis, kFromBasis, kQueryToBasis };

}  // namespace kvs::inline kernels
