// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "io/gguf_blocks/decoders.h"
#include "io/gguf_blocks/load.h"

namespace kvs::blocks {
namespace {

constexpr std::size_t kBlock = 256, kRow = 32, kGroup = 16;
using Bytes32 = std::array<std::uint8_t, kRow>;

/// Writes the next 32 numbers of a block. Each group of 16 has its own scale.
template <class Number>
void write_row(const Number& number, float first_scale, float second_scale, float* out) {
  for (std::size_t i = 0; i < kGroup; ++i) out[i] = first_scale * static_cast<float>(number(i));
  for (std::size_t i = kGroup; i < kRow; ++i) out[i] = second_scale * static_cast<float>(number(i));
}

/// Q3_K: 16 scales of 6 bits. Their low 4 bits are in halves of 8 bytes, the upper 2 bits in quarters of 4 bytes.
std::array<float, 16> q3_scales(const std::byte* bytes, float d) noexcept {
  const auto packed = load<std::array<std::uint8_t, 12>>(bytes);
  std::array<float, 16> scales;
  for (std::size_t group = 0; group < 16; ++group) {
    const int low = group < 8 ? packed[group] & 15 : packed[group - 8] >> 4;
    const int high = packed[8 + group % 4] >> (2 * (group / 4)) & 3;
    scales[group] = d * static_cast<float>((low | high << 4) - 32);
  }
  return scales;
}

/// Q4_K and Q5_K: 8 scales and 8 minima of 6 bits. Rows 0 to 3 use the low 6 bits of bytes 0 to 3 (scales) and 4 to 7
/// (minima). The top 2 bits of these bytes are the upper bits of rows 4 to 7, whose lower 4 bits share bytes 8 to 11.
struct ScalesAndMinima {
  std::array<float, 8> scale, minimum;
};
ScalesAndMinima q45_scales(const std::byte* bytes, float d, float d_minimum) noexcept {
  const auto packed = load<std::array<std::uint8_t, 12>>(bytes);
  ScalesAndMinima result;
  for (std::size_t row = 0; row < 4; ++row) {
    const int scale = packed[row], minimum = packed[4 + row], both = packed[8 + row];
    result.scale[row] = d * static_cast<float>(scale & 63);
    result.minimum[row] = d_minimum * static_cast<float>(minimum & 63);
    result.scale[4 + row] = d * static_cast<float>((both & 15) | (scale >> 6) << 4);
    result.minimum[4 + row] = d_minimum * static_cast<float>(both >> 4 | (minimum >> 6) << 4);
  }
  return result;
}

}  // namespace

// Layout: 16 bytes of scale and minimum in halves, 64 bytes of 2-bit numbers, d, d of the minima. Byte l of each 32
// bytes holds number l of four rows.
void decode_q2_k(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 84) {
    const auto scales = load<std::array<std::uint8_t, 16>>(bytes);
    const float d = load_f16(bytes + 80), d_minimum = load_f16(bytes + 82);
    for (std::size_t row = 0; row < kBlock / kRow; ++row, out += kRow) {
      const auto q = load<Bytes32>(bytes + 16 + row / 4 * kRow);
      const auto shift = 2 * (row % 4);
      for (std::size_t half = 0; half < 2; ++half) {
        const int packed = scales[2 * row + half];
        const float scale = d * static_cast<float>(packed & 15), minimum = d_minimum * static_cast<float>(packed >> 4);
        for (std::size_t i = half * kGroup; i < (half + 1) * kGroup; ++i)
          out[i] = scale * static_cast<float>(q[i] >> shift & 3) - minimum;
      }
    }
  }
}

// Layout: 32 bytes of upper bits (bit r of byte l is for number l of row r; 0 means 4 less), 64 bytes of 2-bit numbers,
// 12 bytes of scales, d.
void decode_q3_k(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 110) {
    const auto upper = load<Bytes32>(bytes);
    const auto scales = q3_scales(bytes + 96, load_f16(bytes + 108));
    for (std::size_t row = 0; row < kBlock / kRow; ++row, out += kRow) {
      const auto q = load<Bytes32>(bytes + 32 + row / 4 * kRow);
      const auto shift = 2 * (row % 4);
      const auto number = [&](std::size_t i) { return (q[i] >> shift & 3) + 4 * (upper[i] >> row & 1) - 4; };
      write_row(number, scales[2 * row], scales[2 * row + 1], out);
    }
  }
}

// Layout: d, d of the minima, 12 bytes of scales, 128 bytes of 4-bit numbers. The halves of 32 bytes hold two rows.
void decode_q4_k(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 144) {
    const auto scales = q45_scales(bytes + 4, load_f16(bytes), load_f16(bytes + 2));
    for (std::size_t row = 0; row < kBlock / kRow; ++row, out += kRow) {
      const auto q = load<Bytes32>(bytes + 16 + row / 2 * kRow);
      const auto shift = 4 * (row % 2);
      const float scale = scales.scale[row], minimum = scales.minimum[row];
      for (std::size_t i = 0; i < kRow; ++i) out[i] = scale * static_cast<float>(q[i] >> shift & 15) - minimum;
    }
  }
}

// Like Q4_K, with 32 bytes of fifth bits before the 128 bytes: bit r of byte l is for number l of row r.
void decode_q5_k(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 176) {
    const auto scales = q45_scales(bytes + 4, load_f16(bytes), load_f16(bytes + 2));
    const auto fifth = load<Bytes32>(bytes + 16);
    for (std::size_t row = 0; row < kBlock / kRow; ++row, out += kRow) {
      const auto q = load<Bytes32>(bytes + 48 + row / 2 * kRow);
      const auto shift = 4 * (row % 2);
      const float scale = scales.scale[row], minimum = scales.minimum[row];
      for (std::size_t i = 0; i < kRow; ++i)
        out[i] = scale * static_cast<float>((q[i] >> shift & 15) | (fifth[i] >> row & 1) << 4) - minimum;
    }
  }
}

// Layout: 128 bytes of lower 4 bits, 64 bytes of upper 2 bits, 16 signed scales, d. For each half of the block, 64
// bytes hold rows 0 and 1 in their low halves and rows 2 and 3 in their high halves. Byte l of 32 holds the upper bits
// of number l of the four rows.
void decode_q6_k(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 210) {
    const auto scales = load<std::array<std::int8_t, 16>>(bytes + 192);
    const float d = load_f16(bytes + 208);
    for (std::size_t row = 0; row < kBlock / kRow; ++row, out += kRow) {
      const std::size_t half = row / 4, quarter = row % 4;
      const auto low = load<Bytes32>(bytes + 64 * half + kRow * (quarter % 2));
      const auto high = load<Bytes32>(bytes + 128 + kRow * half);
      const auto low_shift = 4 * (quarter / 2), high_shift = 2 * quarter;
      const auto number = [&](std::size_t i) {
        return ((low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4) - 32;
      };
      write_row(number, d * static_cast<float>(scales[2 * row]), d * static_cast<float>(scales[2 * row + 1]), out);
    }
  }
}

}  // namespace kvs::blocks
