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

/// Writes 32 numbers from 16 bytes: number i is in the low half of byte i, number 16 + i in the high half.
void write_row(const Codebook& values, const std::byte* bytes, float scale, float* out) {
  const auto q = load<std::array<std::uint8_t, kHalf>>(bytes);
  for (std::size_t i = 0; i < kHalf; ++i) out[i] = scale * values[q[i] & 15];
  for (std::size_t i = 0; i < kHalf; ++i) out[kHalf + i] = scale * values[q[i] >> 4];
}

/// Returns half of 2^(exponent - 127), the value of E8M0, because the codebook is doubled. As in ggml, 255 is not NaN.
float half_e8m0(std::uint32_t exponent) noexcept {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000U << exponent : (exponent - 1) << 23);
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

}  // namespace kvs::blocks
