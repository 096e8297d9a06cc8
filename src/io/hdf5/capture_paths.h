#pragma once

#include <filesystem>

namespace kvs {

/// The names around one capture OUT. At every moment exactly one of these is true, whatever system call was the last:
///  - no journal: there is nothing to resume; OUT.partial, OUT.partial.new are leftovers to delete;
///  - journal and OUT.partial: unfinished, the journal says how far; also when the manifest is already there;
///  - journal and OUT without OUT.partial: finished, only the journal was not deleted yet.
/// A journal is deleted before a new OUT.partial is made and made after OUT.partial is durable, so it always belongs to
/// the file beside it.
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

}  // namespace kvs
