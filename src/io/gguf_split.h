#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "io/gguf.h"

namespace kvs {

/// What a part says of itself: keys split.no, split.count and split.tensors.count.
struct GgufSplit {
  std::uint64_t number = 0;   // of this part, from 0
  std::uint64_t count = 0;    // of parts, at least 2
  std::uint64_t tensors = 0;  // in all parts together
};

/// Nothing for a whole file (no split.count, or 1). @throws Error kInput if the keys contradict each other.
std::optional<GgufSplit> gguf_split_of(const GgufMetadata& metadata, std::string_view where);

/// The path of part `number` (from 0), given that of the part which says `split`: "NAME-00001-of-00003.gguf" counts
/// from 1.
/// @throws Error kInput if `path` is not named so or its numbers are not those of `split`.
std::filesystem::path gguf_part_path(const std::filesystem::path& path, const GgufSplit& split, std::uint64_t number);

}  // namespace kvs
