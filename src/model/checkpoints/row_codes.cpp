#include "model/checkpoints/row_codes.h"

#include <array>
#include <cstdint>
#include <utility>

#include "io/element_type.h"

namespace kvs::inline model {

namespace {

constexpr std::array<float, 16> kE2m1Values{0,     0.5F,  1,     1.5F,  2,     3,     4,     6,
                                            -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

template <std::size_t Bits>
void decode_packed_codes(const std::byte* row, std::size_t column, std::span<float> out) {
  constexpr int kMiddle = 1 << (Bits - 1);
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
  for (std::size_t n = 0; n < out.size(); ++n) {
    const auto pair = std::to_integer<unsigned>(row[(column + n) / 2]);
    out[n] = kE2m1Values[(column + n) % 2 == 0 ? pair & 15U : pair >> 4];
  }
}

unsigned packed_code(const std::byte* bytes, std::size_t index, std::size_t bits) noexcept {
  const std::size_t bit = index * bits, at = bit / 8, shift = bit % 8;
  auto code = std::to_integer<unsigned>(bytes[at]);
  if (shift + bits > 8) code |= std::to_integer<unsigned>(bytes[at + 1]) << 8;
  return code >> shift & ((1U << bits) - 1);
}

DecodeCodes packed_decoder(std::size_t bits) { return kPackedDecoders.at(bits - 1); }

}  // namespace kvs::inline model
