// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/capture_open.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/hdf5/capture_inspect.h"
#include "io/hdf5/capture_io.h"
#include "io/hdf5/capture_paths.h"
#include "io/hdf5/capture_records.h"
#include "io/journal.h"

namespace kvs::inline io {
namespace {

namespace fs = std::filesystem;

/// Returns OUT for "OUT" or "OUT.partial".
fs::path base_name(const fs::path& path) {
  constexpr std::string_view kEnding = ".partial";
  const std::string& name = path.native();
  return name.ends_with(kEnding) ? fs::path(name.substr(0, name.size() - kEnding.size())) : path;
}

/// Returns the paths next to a capture. For a link without a manifest, returns the paths next to its target.
CapturePaths paths_of(const fs::path& path) {
  CapturePaths paths(base_name(path));
  std::error_code none, unresolved;
  const fs::path target = fs::canonical(paths.output, unresolved);
  return unresolved || fs::exists(paths.manifest, none) ? paths : CapturePaths(target);
}

/// @throws Error kConflict if a live process holds the lock of `output`.
void check_not_being_written(const fs::path& output) {
  const Descriptor lock = open_descriptor(CapturePaths::with(output, ".lock"), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!lock.is_open() || ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  std::array<char, 24> text{};
  const ssize_t size = ::pread(lock.get(), text.data(), text.size() - 1, 0);
  std::string owner(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  owner.resize(std::min(owner.find_first_not_of("0123456789"), owner.size()));
  throw Error(ErrorCode::kConflict, output.native(),
              "being written by " + (owner.empty() ? "another process" : "process " + owner));
}

/// The source of the expected structure (manifest or journal), if there is one.
struct Expected {
  CaptureTrust trust = CaptureTrust::kNone;
  std::string source;  // file name of the source
  Json identity;
  CaptureIndex index;
  std::uint64_t committed = 0;
  std::optional<std::uint64_t> complete_offset;
};

Expected read_expected(const CapturePaths& paths, bool unfinished, std::uint64_t file_bytes) {
  Expected expected;
  if (!unfinished && is_there(paths.manifest)) {
    expected.source = paths.manifest.native();
    const Json manifest = parse_json(read_text_file(paths.manifest, kMaxManifestBytes), expected.source);
    expected.identity = manifest.value("identity", Json());
    expected.index = index_from_manifest(manifest, expected.source, file_bytes);
    expected.committed = expected.index.offsets.size() / expected.index.names.size();
    expected.trust = CaptureTrust::kManifest;
  } else if (unfinished) {
    expected.source = paths.journal.native();
    Journal::Content journal = Journal::read(paths.journal);
    CaptureProgress progress = progress_from_journal(journal.records, expected.source, file_bytes);
    expected.identity = std::move(journal.identity);
    expected.index = std::move(progress.index);
    expected.committed = progress.committed;
    expected.complete_offset = progress.complete_offset;
    expected.trust = CaptureTrust::kJournal;
  }
  return expected;
}

void check_digest(const OpenCapture& capture, const Expected& expected) {
  const auto ranges = metadata_ranges(expected.index, expected.source);
  const std::string found = metadata_digest(capture.file.get(), capture.path, ranges, expected.complete_offset);
  if (found != expected.index.metadata_sha256)
    throw Error(ErrorCode::kInput, capture.path.native(),
                "found metadata with SHA-256 " + found + ", expected " + expected.index.metadata_sha256 + " as in " +
                    expected.source + ": the file is damaged or was changed");
}

Error unfinished_error(const fs::path& path, const std::string& state) {
  return Error(ErrorCode::kConflict, path.native(),
               "an unfinished capture" + state + "; --resume finishes it, or " +
                   "--allow-incomplete reads the documents written so far");
}

/// Builds the index of an untrusted file from the dataset offsets that libhdf5 reports.
CaptureIndex index_from_walk(const CaptureLayout& layout, std::vector<std::uint64_t> offsets,
                             std::uint64_t file_bytes) {
  CaptureIndex index;
  index.file_bytes = file_bytes;
  for (const CaptureDataset& dataset : layout.datasets) {
    index.names.push_back(dataset.name);
    index.bytes.push_back(dataset.bytes);
  }
  index.offsets = std::move(offsets);
  return index;
}

}  // namespace

OpenCapture open_capture(const fs::path& path, bool allow_incomplete, bool walk) {
  const CapturePaths paths = paths_of(path);
  const bool unfinished = base_name(path) != path || (!is_there(path) && is_there(paths.partial));
  struct stat status {};
  OpenCapture capture{unfinished ? paths.partial : path, open_regular(unfinished ? paths.partial : path, status)};
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (unfinished) check_not_being_written(paths.output);

  Expected expected = read_expected(paths, unfinished, file_bytes);
  if (unfinished && !allow_incomplete)
    throw unfinished_error(capture.path, " of which " + std::to_string(expected.committed) + " documents are written");
  const bool trusted = expected.trust != CaptureTrust::kNone;
  if (trusted) check_digest(capture, expected);
  CaptureStructure found =
      inspect_capture(capture.file.get(), capture.path, file_bytes,
                      trusted && !walk ? std::optional(states_of(expected.index.names)) : std::nullopt);
  capture.header = std::move(found.header);
  capture.layout = layout_of(capture.header, capture.path.native());
  capture.trust = expected.trust;
  capture.identity = std::move(expected.identity);
  if (!unfinished && !found.complete)
    throw unfinished_error(capture.path, " (its attribute complete is 0) without its journal");
  if (trusted) {
    check_index(expected.index, capture.layout, capture.header.documents, expected.source);
    if (walk && found.offsets != expected.index.offsets)
      throw Error(ErrorCode::kInput, expected.source, "its offsets differ from those of the datasets in the file");
    capture.index = std::move(expected.index);
    capture.documents = expected.committed;
  } else {
    capture.index = index_from_walk(capture.layout, std::move(found.offsets), file_bytes);
    metadata_ranges(capture.index, capture.path.native());  // checks that no two datasets overlap
    capture.documents = capture.header.documents;
  }
  return capture;
}

}  // namespace kvs::inline io
