// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"

namespace kvs::inline io {

/// Converts out.size() stored little-endian numbers (kF32, kF16 or kBF16, any alignment) to f32.
void widen(DType stored, const std::byte* from, std::span<float> out) noexcept;
/// Converts f32 to stored numbers, rounded to nearest even.
void narrow(DType stored, std::span<const float> from, std::byte* out) noexcept;
/// Returns the index of the first NaN or infinity among `count` stored numbers, or `count` if there is none.
std::size_t find_non_finite(DType stored, const std::byte* from, std::size_t count) noexcept;

}  // namespace kvs::inline io
