// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvs::inline exporting {

/// The first half of the SHA-256 of the tensors with which a stream was coded.
using StreamId = std::array<std::uint8_t, 16>;

/// How a stream holds its coded tokens. The first two are as TransformRows.
enum class StreamRows : std::uint16_t { kLayer, kHead, kBlocks };

/// The head of a stream (docs/codec.md): the fields in this order, little-endian, after "KVSC" and a version of 16
/// bits.
struct StreamHead {
  static constexpr std::size_t kBytes = 48;

  std::uint16_t rows = 0;  // StreamRows
  StreamId id = {};
  std::uint32_t layer = 0, tokens = 0;
  std::uint64_t first_position = 0;
  std::uint32_t sinks = 0, outliers = 0;
};

/// @param to  of at least StreamHead::kBytes
void write_head(const StreamHead& head, std::span<std::byte> to);
/// @throws Error kData for a stream that is shorter than a head, of another format or of another version
StreamHead read_head(std::span<const std::byte> stream);

}  // namespace kvs::inline exporting
