// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/capture_convert.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace kvs::inline io {
namespace {

/// Converts binary16 to binary32 without branches or tables, so that loops vectorise. A multiplication with 2^112
/// raises the exponent and also normalises subnormals. Infinities and NaNs get the largest exponent.
float widen_half(std::uint16_t half) noexcept {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffU) << 13;
  const std::uint32_t special = magnitude >= 0x0f800000U ? 0x7f800000U : 0U;
  const std::uint32_t scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F) | special;
  return std::bit_cast<float>(scaled | static_cast<std::uint32_t>(half & 0x8000U) << 16);
}

std::uint16_t load_16(const std::byte* from) noexcept {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

/// Returns the index of the first number whose exponent bits are all ones (NaN or infinity).
template <class Bits>
std::size_t find_exponent(const std::byte* from, std::size_t count, Bits mask) noexcept {
  const auto is_bad = [&](std::size_t i) {
    Bits bits = 0;
    std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
    return (bits & mask) == mask;
  };
  unsigned any = 0;  // no branches: this loop runs over every byte of a capture
  for (std::size_t i = 0; i < count; ++i) any |= static_cast<unsigned>(is_bad(i));
  if (any == 0) return count;
  std::size_t first = 0;
  while (!is_bad(first)) ++first;
  return first;
}

}  // namespace

void widen(DType stored, const std::byte* from, std::span<float> out) noexcept {
  if (stored == DType::kF32) {
    std::memcpy(out.data(), from, out.size_bytes());
  } else if (stored == DType::kBF16) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = bf16_to_f32(load_16(from + 2 * i));
  } else {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = widen_half(load_16(from + 2 * i));
  }
}

void narrow(DType stored, std::span<const float> from, std::byte* out) noexcept {
  if (stored == DType::kF32) {
    std::memcpy(out, from.data(), from.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint16_t bits = stored == DType::kBF16 ? f32_to_bf16(from[i]) : f32_to_f16(from[i]);
    std::memcpy(out + 2 * i, &bits, sizeof bits);
  }
}

std::size_t find_non_finite(DType stored, const std::byte* from, std::size_t count) noexcept {
  if (stored == DType::kF32) return find_exponent<std::uint32_t>(from, count, 0x7f800000U);
  return find_exponent<std::uint16_t>(from, count, stored == DType::kBF16 ? 0x7f80U : 0x7c00U);
}

}  // namespace kvs::inline io
