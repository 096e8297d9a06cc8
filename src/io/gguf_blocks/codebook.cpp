// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "io/gguf_blocks/decoders.h"
#include "io/gguf_blocks/load.h"

namespace kvs::blocks {
namespace {

constexpr std::size_t kRow = 32, kHalf = kRow / 2;
using Codebook = std::array<float, 16>;

constexpr Codebook kNonLinear{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// E2M1 of the OCP microscaling format (sign, 2 exponent bits, 1 mantissa bit), doubled.
constexpr Codebook kE2M1{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Writes 2 · Half numbers: number i is in the low half of byte i, number Half + i in the high half.
template <std::size_t Half = kHalf>
void write_row(const Codebook& values, const std::byte* bytes, float scale, float* out) {
  const auto q = load<std::array<std::uint8_t, Half>>(bytes);
  for (std::size_t i = 0; i < Half; ++i) out[i] = scale * values[q[i] & 15];
  for (std::size_t i = 0; i < Half; ++i) out[Half + i] = scale * values[q[i] >> 4];
}

/// Returns half of 2^(exponent - 127), the value of E8M0, because the codebook is doubled. As in ggml, 255 is not NaN.
float half_e8m0(std::uint32_t exponent) noexcept {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000U << exponent : (exponent - 1) << 23);
}

/// Returns half of the value of E4M3 without its sign. As in ggml, 127 is 0 and 255 is not NaN.
float half_ue4m3(std::uint32_t code) noexcept {
  const std::uint32_t exponent = code >> 3 & 15U, mantissa = code & 7U;
  if (code == 127) return 0;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10F;
  return std::bit_cast<float>((exponent + 119) << 23 | mantissa << 20);
}

}  // namespace

void decode_iq4_nl(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 18, out += kRow)
    write_row(kNonLinear, bytes + 2, load_f16(bytes), out);
}

// Layout: d, the upper 2 bits of eight scales, their lower 4 bits in halves of 4 bytes, 128 bytes of indices.
void decode_iq4_xs(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 136) {
    const float d = load_f16(bytes);
    const int upper = load<std::uint16_t>(bytes + 2);
    const auto lower = load<std::array<std::uint8_t, 4>>(bytes + 4);
    for (std::size_t row = 0; row < 8; ++row, out += kRow) {
      const int scale = (lower[row / 2] >> (4 * (row % 2)) & 15) | (upper >> (2 * row) & 3) << 4;
      write_row(kNonLinear, bytes + 8 + kHalf * row, d * static_cast<float>(scale - 32), out);
    }
  }
}

void decode_mxfp4(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 17, out += kRow)
    write_row(kE2M1, bytes + 1, half_e8m0(load<std::uint8_t>(bytes)), out);
}

// Layout: the scales of four groups of 16; 8 bytes for each group.
void decode_nvfp4(const std::byte* bytes, std::size_t blocks, float* out) {
  constexpr std::size_t kGroups = 4, kBytes = 8;
  for (std::size_t block = 0; block < blocks; ++block, bytes += kGroups + kGroups * kBytes) {
    for (std::size_t group = 0; group < kGroups; ++group, out += 2 * kBytes)
      write_row<kBytes>(kE2M1, bytes + kGroups + group * kBytes, half_ue4m3(load<std::uint8_t>(bytes + group)), out);
  }
}

}  // namespace kvs::blocks
