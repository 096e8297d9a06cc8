// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/kvtc/pool.h"

namespace kvs::inline calibrate {

/// The codes of consecutive tokens of a pool: those of the keys, then those of the values, as one zlib stream.
struct KvtcBlock {
  std::size_t tokens = 0;
  std::vector<std::uint8_t> stream;

  /// Bytes in a file: the stream and its length.
  std::size_t bytes() const noexcept { return stream.size() + sizeof(std::uint32_t); }
};

/// Rows of components, [token, component], of the keys and of the values.
struct KvtcRows {
  std::vector<float> keys, values;
};

/// Codes rows. The DEFLATE stage is zlib's at its highest level (RFC 1951).
/// Deviation: the paper compresses a whole cache at once. Here each block is a stream of its own, so that tokens can be
/// appended, and dropped in layers with a window.
/// @throws Error kEnvironment without memory
KvtcBlock encode_block(const KvtcRows& rows, const KvtcPool& pool, std::size_t tokens);
/// Decodes rows. @throws Error kData for a stream of another length or with errors
KvtcRows decode_block(const KvtcBlock& block, const KvtcPool& pool);

}  // namespace kvs::inline calibrate
