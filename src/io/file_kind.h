#pragma once

#include <cstddef>
#include <string_view>

namespace kvs {

/// Bytes from a file's start that refuse_foreign_text() looks at, as far as there are so many.
inline constexpr std::size_t kKindBytes = 512;

/// @throws Error kInput, with a hint, for a Git LFS pointer: a small text that stands for a large file of any kind.
void refuse_lfs_pointer(std::string_view first_bytes, std::string_view name);

/// A corpus is UTF-8 text. @throws Error kUnsupported, with a way to convert it, for what is something else by its
/// first bytes or its name: Parquet, compressed files, PDF, UTF-16 with or without a byte order mark, tar archives, and
/// the formats of models and captures.
void refuse_foreign_text(std::string_view first_bytes, std::string_view name);

}  // namespace kvs
