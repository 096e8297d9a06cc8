// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace kvs::inline io {

/// Number of bytes from a file's start that refuse_foreign_text() examines, if the file has that many.
inline constexpr std::size_t kKindBytes = 512;

/// @throws Error kInput, with a hint, for a Git LFS pointer: a small text that replaces a large file of any kind.
void refuse_lfs_pointer(std::string_view first_bytes, std::string_view name);

/// Refuses a corpus that is recognisably not UTF-8 text.
/// @throws Error kUnsupported, with a way to convert it, if the first bytes or the name show another format: Parquet,
///         compressed files, PDF, UTF-16 with or without a byte order mark, tar archives, formats of models and
///         captures.
void refuse_foreign_text(std::string_view first_bytes, std::string_view name);

}  // namespace kvs::inline io
