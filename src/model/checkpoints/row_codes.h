// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace kvs::inline model {

/// Decodes the codes of a row from `column` on, without scales.
using DecodeCodes = void (*)(const std::byte* row, std::size_t column, std::span<float> out);

void decode_e4m3_codes(const std::byte* row, std::size_t column, std::span<float> out);
void decode_i8_codes(const std::byte* row, std::size_t column, std::span<float> out);
/// E2M1 of the OCP microscaling format: two codes in a byte, the even column in its low half.
void decode_e2m1_codes(const std::byte* row, std::size_t column, std::span<float> out);

inline constexpr std::size_t kMostBits = 8;
/// Returns code `index` of codes of 1 to kMostBits bits that follow each other from the lowest bit of the first byte
/// on.
unsigned packed_code(const std::byte* bytes, std::size_t index, std::size_t bits) noexcept;
/// Returns the decoder of a row of such codes, each of which stands for itself minus 2^(bits - 1).
DecodeCodes packed_decoder(std::size_t bits);

}  // namespace kvs::inline model
