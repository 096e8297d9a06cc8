#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "io/hdf5/capture_file.h"
#include "io/json.h"

namespace kvs {

inline constexpr std::int64_t kMaxSplitParts = 9999;  // each is looked at before the model is read

/// A capture as several files, each a whole capture of consecutive documents, that one process at a time writes.
struct CaptureSplit {
  std::size_t parts = 1, documents = 1;

  /// Document `first(part)` begins part 0 … parts − 1; first(parts) is `documents`.
  std::size_t first(std::size_t part) const noexcept { return part * documents / parts; }
  /// "book.h5" gives "book-00001-of-00008.h5": counted from 1.
  std::filesystem::path path(const std::filesystem::path& out, std::size_t part) const;
  std::vector<std::filesystem::path> paths(const std::filesystem::path& out) const;
  CaptureHeader header(CaptureHeader whole, std::size_t part) const;
  /// The run's identity (CaptureWriter::open) with the part's number.
  Json identity(Json whole, std::size_t part) const;
};

/// What unfinished runs into `out` keep beside files that are none of `files`: runs with another number of parts.
std::vector<std::filesystem::path> unfinished_other_splits(const std::filesystem::path& out,
                                                           std::span<const std::filesystem::path> files);

/// Joins the parts of a split capture into the file and manifest that the run would have written without a split, byte
/// for byte. Memory: one dataset.
/// @param files     every part, in any order
/// @param progress  is told the documents in place and of the whole
/// @return the header of the whole
/// @throws Error kInput for a capture that is no part, or a part that is damaged, missing or named twice; kConflict if
///         two are of different runs; as CaptureReader::open and CaptureWriter::open
CaptureHeader merge_captures(std::span<const std::filesystem::path> files, const std::filesystem::path& output,
                             const CaptureWriter::Options& options,
                             const std::function<void(std::size_t done, std::size_t of)>& progress);

}  // namespace kvs
