#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define KVS_HOST_DEVICE __host__ __device__
#else
#define KVS_HOST_DEVICE
#endif

namespace kvs {

/// How a row of values is coded: what inference engines keep their caches in. docs/stores.md has the arithmetic of each
/// and its source.
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
  // vLLM: fp8 with given scales; a scale for each row; TurboQuant's keys and values
  kE4m3,
  kInt8Row,
  kE4m3Row,
  kInt4Row,
  kTurboKey4,
  kTurboKey3,
  kTurboValue4,
  kTurboValue3,
  // KIVI: groups with a minimum and a step; QuaRot: the same over a row
  kKivi4,
  kKivi2,
  kQuarot4
};

/// Everything that says how rows lie in memory and what they stand for.
struct RowFormat {
  RowKind kind = RowKind::kF32;
  bool across_tokens = false;   // KIVI's keys: a group is one channel of `group` tokens, which are held together
  bool adjacent_pairs = false;  // RoPE's channels (c, c + n/2) lie side by side before anything else is done
  bool signs = false;           // int4_per_token_head: values are multiplied by fixed signs before the rotation
  std::uint32_t group = 0;      // values of a group of KIVI's
  std::uint32_t hadamard =
      0;                    // runs of so many values, a power of two, are rotated first, where they divide it; 0: none
  std::uint32_t split = 0;  // values [0, split) and the rest are two rows, each filled up to whole blocks with zeros

  constexpr bool is_plain() const noexcept { return kind == RowKind::kF32; }
  /// Whether what is coded is a row in another basis.
  constexpr bool turns() const noexcept { return adjacent_pairs || signs || hadamard > 0; }
  friend constexpr bool operator==(const RowFormat&, const RowFormat&) = default;
};

/// A group of values that is coded by itself, and the bytes it takes.
struct RowGroup {
  std::size_t values, bytes;
};

/// @param values  of a row, or of one of its two parts
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
  }
  return {};
}

/// Bytes of `values` values of one row, or of one of its parts.
KVS_HOST_DEVICE constexpr std::size_t part_bytes(const RowFormat& format, std::size_t values) noexcept {
  const RowGroup group = group_of(format, values);
  return values == 0 ? 0 : (values + group.values - 1) / group.values * group.bytes;
}

/// Bytes of `rows` rows of `values` values each. Rows that are held together count whole.
KVS_HOST_DEVICE constexpr std::size_t rows_bytes(const RowFormat& format, std::size_t values,
                                                 std::size_t rows) noexcept {
  if (format.across_tokens) {
    const RowGroup group = group_of(format, format.group);
    return (rows + group.values - 1) / group.values * values * group.bytes;
  }
  return rows * (part_bytes(format, format.split) + part_bytes(format, values - format.split));
}

/// What is coded by itself: a row, or the rows of format.group tokens that are held together.
KVS_HOST_DEVICE constexpr std::size_t rows_of_unit(const RowFormat& format) noexcept {
  return format.across_tokens ? format.group : 1;
}
/// Floats of scratch memory that coding a unit takes.
KVS_HOST_DEVICE constexpr std::size_t unit_scratch(const RowFormat& format, std::size_t values) noexcept {
  return format.across_tokens ? 2 * (format.group + values) : values + 64;
}

/// A row's way into the basis in which it is coded, or out of it; or that of a row which is multiplied with such rows.
enum class RowTurn : std::uint8_t { kEnter, kLeave, kEnterAsQuery };

}  // namespace kvs
