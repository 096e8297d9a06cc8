// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoints/row_codes.h"

#include <array>
#include <cstdint>
#include <utility>

#include "io/element_type.h"

namespace kvs::inline model {

namespace {

using FourBitValues = std::array<float, 16>;  // [code]
constexpr FourBitValues kE2m1Values{0,     0.5F,  1,     1.5F,  2,     3,     4,     6,
                                    -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};
constexpr FourBitValues kSignedValues{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};

/// [byte]: the values of its low and its high half
using PairValues = std::array<std::array<float, 2>, 256>;
constexpr PairValues pair_values(const FourBitValues& values) {
  PairValues pairs{};
  for (std::size_t byte = 0; byte < pairs.size(); ++byte) pairs[byte] = {values[byte % 16], values[byte / 16]};
  return pairs;
}
constexpr PairValues kE2m1Pairs = pair_values(kE2m1Values), kSignedPairs = pair_values(kSignedValues);

void decode_pairs(const PairValues& pairs, const std::byte* row, std::size_t column, std::span<float> out) {
  const auto pair_of = [&](std::size_t n) -> const auto& {
    return pairs[std::to_integer<unsigned>(row[(column + n) / 2])];
  };
  std::size_t n = column % 2;
  if (n == 1 && !out.empty()) out[0] = pair_of(0)[1];
  for (; n + 1 < out.size(); n += 2) {
    const std::array<float, 2>& pair = pair_of(n);
    out[n] = pair[0];
    out[n + 1] = pair[1];
  }
  if (n < out.size()) out[n] = pair_of(n)[0];
}

template <std::size_t Bits>
void decode_packed_codes(const std::byte* row, std::size_t column, std::span<float> out) {
  constexpr int kMiddle = 1 << (Bits - 1);
  if constexpr (Bits == 4) return decode_pairs(kSignedPairs, row, column, out);
  for (std::size_t n = 0; n < out.size(); ++n)
    out[n] = static_cast<float>(static_cast<int>(packed_code(row, column + n, Bits)) - kMiddle);
}

template <std::size_t... Bits>
constexpr std::array<DecodeCodes, sizeof...(Bits)> packed_decoders(std::index_sequence<Bits...>) {
  return {decode_packed_codes<Bits + 1>...};
}
constexpr auto kPackedDecoders = packed_decoders(std::make_index_sequence<kMostBits>());

}  // namespace

void decode_e4m3_codes(const std::byte* row, std::size_t column, std::span<float> out) {
  static const ElementType* const type = element_type_of_safetensors("F8_E4M3");
  type->decode(row + column, out.size(), out.data());
}

void decode_i8_codes(const std::byte* row, std::size_t column, std::span<float> out) {
  for (std::size_t n = 0; n < out.size(); ++n)
    out[n] = static_cast<float>(std::to_integer<std::int8_t>(row[column + n]));
}

void decode_e2m1_codes(const std::byte* row, std::size_t column, std::span<float> out) {
  decode_pairs(kE2m1Pairs, row, column, out);
}

unsigned packed_code(const std::byte* bytes, std::size_t index, std::size_t bits) noexcept {
  const std::size_t bit = index * bits, at = bit / 8, shift = bit % 8;
  auto code = std::to_integer<unsigned>(bytes[at]);
  if (shift + bits > 8) code |= std::to_integer<unsigned>(bytes[at + 1]) << 8;
  return code >> shift & ((1U << bits) - 1);
}

DecodeCodes packed_decoder(std::size_t bits) { return kPackedDecoders.at(bits - 1); }

}  // namespace kvs::inline model
