// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "io/hdf5/capture_file.h"
#include "io/json.h"

namespace kvs::inline states {

inline constexpr std::int64_t kMaxSplitParts = 9999;  // each is checked before the model is read

/// A capture in several files. Each is a capture of consecutive documents and is written by one process at a time.
struct CaptureSplit {
  std::size_t parts = 1, documents = 1;

  /// First document of part 0 … parts − 1; first(parts) is `documents`.
  std::size_t first(std::size_t part) const noexcept { return part * documents / parts; }
  /// Returns "book-00001-of-00008.h5" for "book.h5" and part 0.
  std::filesystem::path path(const std::filesystem::path& out, std::size_t part) const;
  std::vector<std::filesystem::path> paths(const std::filesystem::path& out) const;
  CaptureHeader header(CaptureHeader whole, std::size_t part) const;
  /// Adds the part's number to the run's identity (CaptureWriter::open).
  Json identity(Json whole, std::size_t part) const;
};

/// Returns files of unfinished runs into `out` with another number of parts, that is, files not in `files`.
std::vector<std::filesystem::path> unfinished_other_splits(const std::filesystem::path& out,
                                                           std::span<const std::filesystem::path> files);

/// Joins the parts of a split capture into the file and manifest that the run would have written without a split, byte
/// for byte. Memory: one dataset.
/// @param files     every part, in any order
/// @param progress  called with the number of documents written and in total
/// @return the header of the whole
/// @throws Error kInput for a capture that is not a part, or a part that is damaged, missing or named twice; kConflict
/// if two parts are of different runs; also what CaptureReader::open and CaptureWriter::open throw
CaptureHeader merge_captures(std::span<const std::filesystem::path> files, const std::filesystem::path& output,
                             const CaptureWriter::Options& options,
                             const std::function<void(std::size_t done, std::size_t of)>& progress);

}  // namespace kvs::inline states
