#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvs {

/// Plain (unquantised) element types.
enum class DType { kF32, kF16, kBF16, kF64 };

constexpr std::size_t item_size(DType type) noexcept {
  return type == DType::kF64 ? 8 : type == DType::kF32 ? 4 : 2;
}

/// "f32", "f16", "bf16", "f64": the names used on command lines and in files.
std::string_view name_of(DType type) noexcept;
std::optional<DType> dtype_from_name(std::string_view name) noexcept;

/// bfloat16 is the upper half of a binary32.
inline float bf16_to_f32(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
/// Round to nearest even; NaN stays NaN (quieted), overflow becomes infinity.
inline std::uint16_t f32_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// IEEE binary16, subnormals, infinities and NaN included.
float f16_to_f32(std::uint16_t bits) noexcept;
/// Round to nearest even; above 65504 rounds to infinity as IEEE 754 says.
std::uint16_t f32_to_f16(float value) noexcept;

}  // namespace kvs
