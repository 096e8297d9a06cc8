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
  kQuarot4,
  // ours: trellis-coded values of unequal rates (codecs/trellis.h), rows held in one part
  kTrellis
};

/// Everything that says how rows lie in memory and what they stand for.
struct RowFormat {
  RowKind kind = RowKind::kF32;
  bool across_tokens = false;   // KIVI's keys: a group is one channel of `group` tokens, which are held together
  bool adjacent_pairs = false;  // RoPE's channels (c, c + n/2) lie side by side before anything else is done
  bool signs = false;           // int4_per_token_head: values are multiplied by fixed signs before the rotation
  std::uint32_t group = 0;      // values of a group of KIVI's; bits of a row of kTrellis
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
    case RowKind::kTrellis:
      return {values, 2 + (group + 7) / 8};
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

/// One value of a row of kTrellis. A row's tables are the books [bits 0 … 8][state] and these for each value.
struct TrellisValue {
  float offset = 0, scale = 1;  // what is coded is (x − offset) / scale, of unit variance
  float weight = 1;             // of its squared error, at most 1
  float bits = 0;               // 0 … 8
};
constexpr std::size_t kTrellisBooks = std::size_t{9} * 256;

/// What rows of one head need beside their bytes.
struct RowTables {
  float scale = 1;                // of kE4m3
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

/// What is coded by itself: a row, or the rows of format.group tokens that are held together.
KVS_HOST_DEVICE constexpr std::size_t rows_of_unit(const RowFormat& format) noexcept {
  return format.across_tokens ? format.group : 1;
}
/// Floats of scratch memory that coding a unit takes.
KVS_HOST_DEVICE constexpr std::size_t unit_scratch(const RowFormat& format, std::size_t values) noexcept {
  if (format.kind == RowKind::kTrellis) return 512 + 32 * values;
  return format.across_tokens ? 2 * (format.group + values) : values + 64;
}

/// A row's way into the basis in which it is coded, or out of it; or that of a row which is multiplied with such rows.
enum class RowTurn : std::uint8_t { kEnter, kLeave, kEnterAsQuery };

}  // namespace kvs
