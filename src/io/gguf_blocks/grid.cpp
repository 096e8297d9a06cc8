// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <span>

#include "io/gguf_blocks/decoders.h"
#include "io/gguf_blocks/grids.h"
#include "io/gguf_blocks/load.h"

namespace kvs::blocks {
namespace {

constexpr std::size_t kBlock = 256, kRow = 32, kGroup = 8, kGroups = kBlock / kGroup;

template <std::size_t Rows, std::size_t Columns>
using Grid = std::array<std::array<std::int8_t, Columns>, Rows>;

constexpr std::uint32_t digit(char character) noexcept {
  return static_cast<std::uint32_t>(character <= '9' ? character - '0' : character - 'a' + 10);
}

/// @param values  at most 4: indices of 2 bits, otherwise of 4
template <std::size_t Rows, std::size_t Columns>
Grid<Rows, Columns> unpacked(std::string_view hex, std::span<const std::int8_t> values) {
  const std::size_t bits = values.size() <= 4 ? 2 : 4, in_byte = 8 / bits;
  Grid<Rows, Columns> grid{};
  for (std::size_t n = 0; n < Rows * Columns; ++n) {
    const std::size_t byte = n / in_byte;
    const std::uint32_t packed = digit(hex[2 * byte]) << 4 | digit(hex[2 * byte + 1]);
    grid[n / Columns][n % Columns] = values[packed >> (n % in_byte * bits) & ((1U << bits) - 1)];
  }
  return grid;
}

constexpr std::array<std::int8_t, 3> kIq1Values{-1, 0, 1}, kIq2Values{8, 25, 43};
constexpr std::array<std::int8_t, 8> kIq3XxsValues{4, 12, 20, 28, 36, 44, 52, 62},
    kIq3SValues{1, 3, 5, 7, 9, 11, 13, 15};

/// Writes a row of a grid with signs. Bit j of `signs`: value j is negative.
template <std::size_t Columns>
void write_signed(const std::array<std::int8_t, Columns>& row, std::uint32_t signs, float scale, float* out) {
  for (std::size_t j = 0; j < Columns; ++j) {
    const float value = scale * static_cast<float>(row[j]);
    out[j] = (signs >> j & 1U) != 0 ? -value : value;
  }
}

/// Returns the signs of 8 values of which 7 are stored: an even number of values is negative.
std::uint32_t even_signs(std::uint32_t stored) noexcept {
  const std::uint32_t seven = stored & 127U;
  return seven | (static_cast<std::uint32_t>(std::popcount(seven)) & 1U) << 7;
}

/// Returns number `index` of 4-bit numbers, the first in the lowest bits.
template <std::size_t Bytes>
std::uint32_t nibble(const std::array<std::uint8_t, Bytes>& packed, std::size_t index) noexcept {
  return static_cast<std::uint32_t>(packed[index / 2] >> 4 * (index % 2)) & 15U;
}

/// IQ2_XS and IQ2_S: each scale is for two groups.
float iq2_scale(const std::array<std::uint8_t, kGroups / 4>& scales, std::size_t group, float d) noexcept {
  return d * (0.5F + static_cast<float>(nibble(scales, group / 2))) * 0.25F;
}

/// Writes a group of IQ1: each value of the grid is moved by an eighth.
void write_shifted(const std::array<std::int8_t, kGroup>& row, bool down, float scale, float* out) {
  const float shift = down ? -0.125F : 0.125F;
  for (std::size_t j = 0; j < kGroup; ++j) out[j] = scale * (static_cast<float>(row[j]) + shift);
}

const Grid<2048, kGroup>& iq1_grid() {
  static const auto grid = unpacked<2048, kGroup>(packed::kIq1, kIq1Values);
  return grid;
}

}  // namespace

// Layout: d; for each row of 32: 4 indices, then 4 · 7 bits of signs and a scale of 4 bits.
void decode_iq2_xxs(const std::byte* bytes, std::size_t blocks, float* out) {
  static const auto grid = unpacked<256, kGroup>(packed::kIq2Xxs, kIq2Values);
  for (std::size_t block = 0; block < blocks; ++block, bytes += 66) {
    const float d = load_f16(bytes);
    for (std::size_t row = 0; row < kBlock / kRow; ++row) {
      const auto index = load<std::array<std::uint8_t, 4>>(bytes + 2 + 8 * row);
      const auto signs = load<std::uint32_t>(bytes + 6 + 8 * row);
      const float scale = d * (0.5F + static_cast<float>(signs >> 28)) * 0.25F;
      for (std::size_t group = 0; group < 4; ++group, out += kGroup)
        write_signed(grid[index[group]], even_signs(signs >> 7 * group), scale, out);
    }
  }
}

// Layout: d; for each group of 8: an index of 9 bits and 7 bits of signs; scales of 4 bits.
void decode_iq2_xs(const std::byte* bytes, std::size_t blocks, float* out) {
  static const auto grid = unpacked<512, kGroup>(packed::kIq2Xs, kIq2Values);
  for (std::size_t block = 0; block < blocks; ++block, bytes += 74) {
    const float d = load_f16(bytes);
    const auto scales = load<std::array<std::uint8_t, 8>>(bytes + 66);
    for (std::size_t group = 0; group < kGroups; ++group, out += kGroup) {
      const std::uint32_t both = load<std::uint16_t>(bytes + 2 + 2 * group);
      write_signed(grid[both & 511U], even_signs(both >> 9), iq2_scale(scales, group, d), out);
    }
  }
}

// Layout: d; the lower 8 bits of the groups' indices; the groups' signs; the upper 2 bits of the indices; scales of 4
// bits.
void decode_iq2_s(const std::byte* bytes, std::size_t blocks, float* out) {
  static const auto grid = unpacked<1024, kGroup>(packed::kIq2S, kIq2Values);
  for (std::size_t block = 0; block < blocks; ++block, bytes += 82) {
    const float d = load_f16(bytes);
    const auto low = load<std::array<std::uint8_t, kGroups>>(bytes + 2);
    const auto signs = load<std::array<std::uint8_t, kGroups>>(bytes + 34);
    const auto high = load<std::array<std::uint8_t, 8>>(bytes + 66);
    const auto scales = load<std::array<std::uint8_t, 8>>(bytes + 74);
    for (std::size_t group = 0; group < kGroups; ++group, out += kGroup) {
      const std::size_t index = low[group] | (high[group / 4] >> 2 * (group % 4) & 3U) << 8;
      write_signed(grid[index], signs[group], iq2_scale(scales, group, d), out);
    }
  }
}

// Layout: d; indices, two for each group of 8; for each row of 32: 4 · 7 bits of signs and a scale of 4 bits.
void decode_iq3_xxs(const std::byte* bytes, std::size_t blocks, float* out) {
  static const auto grid = unpacked<256, 4>(packed::kIq3Xxs, kIq3XxsValues);
  for (std::size_t block = 0; block < blocks; ++block, bytes += 98) {
    const float d = load_f16(bytes);
    const auto index = load<std::array<std::uint8_t, 2 * kGroups>>(bytes + 2);
    for (std::size_t row = 0; row < kBlock / kRow; ++row) {
      const auto packed = load<std::uint32_t>(bytes + 66 + 4 * row);
      const float scale = d * (0.5F + static_cast<float>(packed >> 28)) * 0.5F;
      for (std::size_t group = 0; group < 4; ++group, out += kGroup) {
        const std::uint32_t signs = even_signs(packed >> 7 * group);
        write_signed(grid[index[8 * row + 2 * group]], signs, scale, out);
        write_signed(grid[index[8 * row + 2 * group + 1]], signs >> 4, scale, out + 4);
      }
    }
  }
}

// Layout: d; the lower 8 bits of the indices, two for each group of 8; their ninth bits; the groups' signs; a scale of
// 4 bits for each row of 32.
void decode_iq3_s(const std::byte* bytes, std::size_t blocks, float* out) {
  static const auto grid = unpacked<512, 4>(packed::kIq3S, kIq3SValues);
  for (std::size_t block = 0; block < blocks; ++block, bytes += 110) {
    const float d = load_f16(bytes);
    const auto low = load<std::array<std::uint8_t, 2 * kGroups>>(bytes + 2);
    const auto ninth = load<std::array<std::uint8_t, 8>>(bytes + 66);
    const auto signs = load<std::array<std::uint8_t, kGroups>>(bytes + 74);
    const auto scales = load<std::array<std::uint8_t, 4>>(bytes + 106);
    for (std::size_t quad = 0; quad < 2 * kGroups; ++quad, out += 4) {
      const std::size_t row = quad / 8, index = low[quad] | (ninth[row] >> (quad % 8) & 1U) << 8;
      const float scale = d * static_cast<float>(1 + 2 * nibble(scales, row));
      write_signed(grid[index], static_cast<std::uint32_t>(signs[quad / 2]) >> 4 * (quad % 2), scale, out);
    }
  }
}

// Layout: d; the lower 8 bits of the groups' indices; for each row of 32: 4 · 3 upper bits, a scale of 3 bits, and the
// shift's sign.
void decode_iq1_s(const std::byte* bytes, std::size_t blocks, float* out) {
  const auto& grid = iq1_grid();
  for (std::size_t block = 0; block < blocks; ++block, bytes += 50) {
    const float d = load_f16(bytes);
    const auto low = load<std::array<std::uint8_t, kGroups>>(bytes + 2);
    for (std::size_t group = 0; group < kGroups; ++group, out += kGroup) {
      const std::uint32_t row = load<std::uint16_t>(bytes + 34 + group / 4 * 2);
      const float scale = d * static_cast<float>(2 * (row >> 12 & 7U) + 1);
      const std::size_t index = low[group] | (row >> 3 * (group % 4) & 7U) << 8;
      write_shifted(grid[index], row >> 15 != 0, scale, out);
    }
  }
}

// Layout: the lower 8 bits of the groups' indices; for each group 3 upper bits and the shift's sign; 4 words with a
// quarter of d in the upper 4 bits, and four scales of 3 bits, each for two groups.
void decode_iq1_m(const std::byte* bytes, std::size_t blocks, float* out) {
  const auto& grid = iq1_grid();
  for (std::size_t block = 0; block < blocks; ++block, bytes += 56) {
    const auto low = load<std::array<std::uint8_t, kGroups>>(bytes);
    const auto high = load<std::array<std::uint8_t, kGroups / 2>>(bytes + 32);
    const auto scales = load<std::array<std::uint16_t, 4>>(bytes + 48);
    std::uint32_t bits = 0;
    for (std::size_t quarter = 0; quarter < 4; ++quarter) bits |= scales[quarter] >> 12U << 4 * quarter;
    const float d = f16_to_f32(static_cast<std::uint16_t>(bits));
    for (std::size_t group = 0; group < kGroups; ++group, out += kGroup) {
      const std::uint32_t upper = nibble(high, group);
      const std::uint32_t factor = 2 * (scales[group / 8] >> 3 * (group / 2 % 4) & 7U) + 1;
      const std::size_t index = low[group] | (upper & 7U) << 8;
      write_shifted(grid[index], upper >= 8, d * static_cast<float>(factor), out);
    }
  }
}

}  // namespace kvs::blocks
