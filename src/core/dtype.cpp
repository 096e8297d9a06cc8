// SPDX-License-Identifier: Apache-2.0
#include "core/dtype.h"

#include <array>
#include <cmath>
#include <utility>

namespace kvs::inline core {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 4> kNames{
    {{DType::kF32, "f32"}, {DType::kF16, "f16"}, {DType::kBF16, "bf16"}, {DType::kF64, "f64"}}};

}  // namespace

std::string_view name_of(DType type) noexcept {
  for (const auto& [candidate, name] : kNames)
    if (candidate == type) return name;
  return "?";
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (const auto& [type, candidate] : kNames)
    if (candidate == name) return type;
  return std::nullopt;
}

std::uint16_t f32_to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  if (magnitude >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // 65536 and above, infinity
  if (magnitude < 0x38800000U) {                                                    // below 2^-14: subnormal
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24F;                 // exact scaling, then nearest even
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(scaled)));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
}

}  // namespace kvs::inline core
