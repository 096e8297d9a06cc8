// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "io/hdf5/capture_layout.h"

namespace kvs::inline io {

/// The contents of a capture as reported by libhdf5.
struct CaptureStructure {
  CaptureHeader header;
  bool complete = false;
  std::vector<std::uint64_t> offsets;  // [document · dataset]; empty unless the file was walked
};

/// Reads the attributes of an open capture in an isolated child.
/// @param states  the kinds of states according to the manifest or journal whose metadata digest matched. Without it
///         the file is untrusted: every link, dataset shape, type, layout and size is checked too.
/// @throws Error kInput naming the HDF5 path for anything that contradicts the attributes; kUnsupported for a newer
///         version or storage that is not contiguous.
CaptureStructure inspect_capture(int descriptor, const std::filesystem::path& path, std::uint64_t file_bytes,
                                 const std::optional<StateSet>& states);

}  // namespace kvs::inline io
