// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/hdf5/capture_layout.h"

namespace kvs::inline io {

/// Lays out a whole capture in the new file `path`: attributes, groups and contiguous datasets, whose storage is
/// reserved but not written. On return HDF5 is closed, the space of the file is allocated (a full disk shows here),
/// nothing is synced and `complete` is 0.
/// @param complete_offset  receives the offset of the attribute `complete` (eight bytes)
/// @return the index: offsets of all datasets, file size, metadata digest; no checksums yet
/// @throws Error kEnvironment; removes `path`.
CaptureIndex create_skeleton(const std::filesystem::path& path, const CaptureHeader& header,
                             const CaptureLayout& layout, std::uint64_t& complete_offset);

}  // namespace kvs::inline io
