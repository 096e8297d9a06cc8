#pragma once

#include <cstdint>

#include "io/gguf.h"
#include "io/gguf_reader.h"

namespace kvs {

/// The key-value part of a GGUF file, which starts at `reader`.
struct GgufKeyValues {
  GgufMetadata metadata;
  GgufEncoded encoded;
  std::uint64_t alignment = 32;  // of tensors, in bytes: general.alignment
};

GgufKeyValues read_gguf_metadata(GgufReader& reader, std::uint64_t count);

}  // namespace kvs
