// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "io/hdf5/capture_layout.h"

namespace kvs::inline io {

/// Bytes per read. A checksum and a search then find the bytes in the second-level cache.
inline constexpr std::uint64_t kCaptureBlock = 1U << 18;

/// Fills `out` from file offset `offset`. @throws Error kInput if the file ends early, kEnvironment if the disk fails.
void read_at(int descriptor, const std::filesystem::path& path, std::span<std::byte> out, std::uint64_t offset);

/// Returns the CRC-32C of `bytes` bytes from `offset`, read in blocks. Errors as read_at().
std::uint32_t stored_checksum(int descriptor, const std::filesystem::path& path, std::uint64_t offset,
                              std::uint64_t bytes);

/// Returns the SHA-256 of these ranges of an open file. Hashes kCompleteBytes bytes from offset `zeroed` as zeros, so
/// that the digest of an unfinished capture does not depend on `complete`. Errors as read_at().
std::string metadata_digest(int descriptor, const std::filesystem::path& path, std::span<const FileRange> ranges,
                            std::optional<std::uint64_t> zeroed = {});

}  // namespace kvs::inline io
