// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "io/gguf_blocks/decoders.h"
#include "io/gguf_blocks/load.h"

namespace kvs::blocks {
namespace {

/// Writes the digits of `Bytes` bytes, each of which holds `digits` numbers from -1 to 1: first number 0 of every byte,
/// then number 1 and so on. A byte is a fraction of 256; its digits in base 3 are the numbers plus 1.
template <std::size_t Bytes>
float* write_digits(const std::byte* bytes, std::size_t digits, float d, float* out) {
  auto rest = load<std::array<std::uint8_t, Bytes>>(bytes);
  for (std::size_t digit = 0; digit < digits; ++digit, out += Bytes) {
    for (std::size_t i = 0; i < Bytes; ++i) {
      const int tripled = 3 * rest[i];
      out[i] = d * static_cast<float>((tripled >> 8) - 1);
      rest[i] = static_cast<std::uint8_t>(tripled);
    }
  }
  return out;
}

}  // namespace

// Layout: 48 bytes with 5 numbers each, the first 32 apart from the others; 4 bytes with 4 numbers each; d.
void decode_tq1_0(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 54) {
    const float d = load_f16(bytes + 52);
    out = write_digits<32>(bytes, 5, d, out);
    out = write_digits<16>(bytes + 32, 5, d, out);
    out = write_digits<4>(bytes + 48, 4, d, out);
  }
}

// Layout: 64 bytes with 4 numbers of 2 bits each, the first 32 apart from the others; d.
void decode_tq2_0(const std::byte* bytes, std::size_t blocks, float* out) {
  constexpr std::size_t kHalf = 32;
  for (std::size_t block = 0; block < blocks; ++block, bytes += 66) {
    const float d = load_f16(bytes + 64);
    for (std::size_t row = 0; row < 8; ++row, out += kHalf) {
      const auto q = load<std::array<std::uint8_t, kHalf>>(bytes + row / 4 * kHalf);
      for (std::size_t i = 0; i < kHalf; ++i) out[i] = d * static_cast<float>((q[i] >> 2 * (row % 4) & 3) - 1);
    }
  }
}

}  // namespace kvs::blocks
