// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace kvs::inline io {

/// The file names of one capture OUT. After every system call one of these states holds:
///  - journal and OUT.partial exist: unfinished; the journal records the progress. The manifest may already exist.
///  - else OUT and a manifest with the run's identity exist: finished; the journal may still exist.
///  - else there is nothing to resume; OUT.partial, OUT.partial.new and a journal are leftovers to delete.
/// A journal is deleted before a new OUT.partial is made, and created after OUT.partial is durable, so a journal always
/// belongs to the OUT.partial next to it.
struct CapturePaths {
  std::filesystem::path output, partial, fresh, journal, manifest;

  explicit CapturePaths(const std::filesystem::path& out)
      : output(out),
        partial(with(out, ".partial")),
        fresh(with(out, ".partial.new")),
        journal(with(out, ".journal")),
        manifest(with(out, ".manifest.json")) {}

  static std::filesystem::path with(std::filesystem::path path, const char* ending) { return path += ending; }
};

}  // namespace kvs::inline io
