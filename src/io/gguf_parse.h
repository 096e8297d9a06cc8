// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/gguf.h"

namespace kvs::inline io {

struct GgufContents {
  GgufMetadata metadata;
  GgufEncoded encoded;
  std::vector<StoredTensor> tensors;  // in byte order of names
  std::string warning;                // describes a harmless oddity, or is empty
};

/// Parses everything but the tensor values of one GGUF file (whole, or a part of a split file), as views into `file`.
/// @param where  the file, for messages.  @throws Error as GgufFile::open().
GgufContents parse_gguf(std::span<const std::byte> file, std::string_view where);

}  // namespace kvs::inline io
