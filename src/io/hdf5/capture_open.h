// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "io/descriptor.h"
#include "io/hdf5/capture_layout.h"

namespace kvs::inline io {

/// The reference for integrity checks of a capture's data.
enum class CaptureTrust { kManifest, kJournal, kNone };

/// A capture with checked metadata. From here on data are read by offset, without libhdf5.
struct OpenCapture {
  std::filesystem::path path;  // the file to read: OUT or OUT.partial
  Descriptor file;
  CaptureHeader header{};
  CaptureLayout layout{};
  CaptureIndex index{};  // has no checksums without manifest and journal
  CaptureTrust trust = CaptureTrust::kNone;
  Json identity = {};           // from the manifest or journal; null without one
  std::uint64_t documents = 0;  // number of readable documents

  std::uint64_t offset(std::uint64_t document, std::size_t dataset) const {
    return index.offsets[document * layout.datasets.size() + dataset];
  }
  /// "FILE: /doc/00000/layer/00/k_pre"
  std::string place(std::uint64_t document, std::size_t dataset) const {
    return path.native() + ": " + document_group(document) + "/" + layout.datasets[dataset].name;
  }
};

/// Opens OUT (or OUT.partial, by either name) and checks its metadata in this order: regular file, then size and
/// SHA-256 of the metadata against OUT.manifest.json or the journal, then libhdf5's view of the file, in an isolated
/// child.
/// @param walk  check every link and dataset even if the digest matches
/// @throws Error kInput, kUnsupported; kConflict for an unfinished capture without allow_incomplete, or one that
///         another process is writing.
OpenCapture open_capture(const std::filesystem::path& path, bool allow_incomplete, bool walk);

}  // namespace kvs::inline io
