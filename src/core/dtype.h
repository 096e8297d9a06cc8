// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvs::inline core {

/// Plain (unquantised) element types.
enum class DType { kF32, kF16, kBF16, kF64 };

constexpr std::size_t item_size(DType type) noexcept { return type == DType::kF64 ? 8 : type == DType::kF32 ? 4 : 2; }

/// Returns the name used on command lines and in files: "f32", "f16", "bf16" or "f64".
std::string_view name_of(DType type) noexcept;
std::optional<DType> dtype_from_name(std::string_view name) noexcept;

/// bfloat16 is the upper half of a binary32.
inline float bf16_to_f32(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
/// Returns an element of a matrix of f32 or of bf16. One template then reads both.
inline float f32_of(float value) noexcept { return value; }
inline float f32_of(std::uint16_t bits) noexcept { return bf16_to_f32(bits); }

/// Rounds to nearest even. NaN stays NaN (quieted); overflow becomes infinity.
inline std::uint16_t f32_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// Converts IEEE binary16, including subnormals, infinities and NaN. Selects instead of branches let loops vectorise.
inline float f16_to_f32(std::uint16_t bits) noexcept {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  const std::uint32_t normal = magnitude + (magnitude < 0x0f800000U ? 112U << 23 : 224U << 23);  // or infinity, NaN
  // A subnormal is fraction · 2^-24: 2^-14 with the fraction added below its leading one, minus 2^-14. This is exact.
  const float subnormal = std::bit_cast<float>(magnitude + 0x38800000U) - 0x1p-14F;
  const std::uint32_t widened = magnitude < 0x00800000U ? std::bit_cast<std::uint32_t>(subnormal) : normal;
  return std::bit_cast<float>(widened | static_cast<std::uint32_t>(bits & 0x8000U) << 16);
}
/// Rounds to nearest even. Values that round above 65504 become infinity, as IEEE 754 specifies.
std::uint16_t f32_to_f16(float value) noexcept;

}  // namespace kvs::inline core
