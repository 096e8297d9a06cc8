#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/hdf5/capture_layout.h"

namespace kvs {

/// Lays out a whole capture in the new file `path`: attributes, groups and contiguous datasets, their storage reserved
/// but not written. HDF5 is closed and the space of the file allocated (disk full shows here) on return; nothing is
/// synced. `complete` is 0.
/// @param complete_offset  set to where the eight bytes of the attribute `complete` lie
/// @return the index: offsets of all datasets, file size, metadata digest; no checksums yet
/// @throws Error kEnvironment, with `path` removed.
CaptureIndex create_skeleton(const std::filesystem::path& path, const CaptureHeader& header,
                             const CaptureLayout& layout, std::uint64_t& complete_offset);

}  // namespace kvs
