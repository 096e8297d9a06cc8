// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "io/byte_reader.h"
#include "io/gguf.h"

namespace kvs::inline io {

/// The key-value section of a GGUF file, read from the position of `reader`.
struct GgufKeyValues {
  GgufMetadata metadata;
  GgufEncoded encoded;
  std::uint64_t alignment = 32;  // general.alignment: alignment of tensors in bytes
};

GgufKeyValues read_gguf_metadata(ByteReader& reader, std::uint64_t count);

}  // namespace kvs::inline io
