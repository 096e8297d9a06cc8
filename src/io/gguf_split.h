// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "io/gguf.h"

namespace kvs::inline io {

/// The keys split.no, split.count and split.tensors.count of one part.
struct GgufSplit {
  std::uint64_t number = 0;   // number of this part, from 0
  std::uint64_t count = 0;    // number of parts, at least 2
  std::uint64_t tensors = 0;  // number of tensors in all parts together
};

/// Returns nullopt for a whole file (no split.count, or 1). @throws Error kInput if the keys contradict each other.
std::optional<GgufSplit> gguf_split_of(const GgufMetadata& metadata, std::string_view where);

/// Returns the path of part `number` (from 0). `path` is the part that holds the keys `split`. Names count from 1:
/// "NAME-00001-of-00003.gguf". @throws Error kInput if `path` has another name or its numbers contradict `split`.
std::filesystem::path gguf_part_path(const std::filesystem::path& path, const GgufSplit& split, std::uint64_t number);

}  // namespace kvs::inline io
