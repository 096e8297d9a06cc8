// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/transform/entropy_model.h"

namespace kvs::inline calibrate {

/// The levels of a block of tokens as a stream that decodes without any other block: range asymmetric numeral systems
/// with one state of 32 bits, in words of 16 bits. Signs and escapes are bits of probability 1/2. A decoder computes in
/// integers only, so it finds the same levels on any processor. O(tokens · coefficients).
/// Source: Duda (2013), arXiv:1311.2540, section 3.
struct LevelBlock {
  std::vector<std::uint16_t> words;
  std::size_t tokens = 0;

  /// Bytes of the stream, and of its length in a file or a table.
  std::size_t bytes() const noexcept { return words.size() * sizeof(std::uint16_t) + sizeof(std::uint32_t); }
};

/// Bytes that a level takes at most: 12 bits of its probability, a sign and 27 bits of an escape, each of these 29
/// symbols with 0.09 bits more, since a state is a whole number. Each block also has a state of 4 bytes.
inline constexpr std::size_t kMaxLevelBytes = 6;

/// @param magnitudes  [token, coefficient]: signed, on a path of the trellis
/// @param scales      [coefficient]
LevelBlock encode_levels(const EntropyModel& model, std::span<const std::int32_t> magnitudes,
                         std::span<const std::uint8_t> scales);
/// Returns the magnitudes. @throws Error kData if the words are not such a stream
std::vector<std::int32_t> decode_levels(const EntropyModel& model, const LevelBlock& block,
                                        std::span<const std::uint8_t> scales);

}  // namespace kvs::inline calibrate
