#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"

namespace kvs {

/// Stored little-endian numbers (kF32, kF16 or kBF16, any alignment) as f32. out.size() numbers.
void widen(DType stored, const std::byte* from, std::span<float> out) noexcept;
/// f32 as stored numbers, rounded to nearest even.
void narrow(DType stored, std::span<const float> from, std::byte* out) noexcept;
/// Index of the first NaN or infinity among `count` stored numbers, or `count`.
std::size_t find_non_finite(DType stored, const std::byte* from, std::size_t count) noexcept;

}  // namespace kvs
