#pragma once

#include <filesystem>

namespace kvs {

/// The names around one capture OUT. At every moment one of these is true, whatever system call was the last:
///  - journal and OUT.partial: unfinished; the journal says how far. The manifest may be there already.
///  - else, OUT and a manifest with the run's identity: finished; the journal may be there still.
///  - else there is nothing to resume, and OUT.partial, OUT.partial.new, a journal are leftovers to delete.
/// A journal is deleted before a new OUT.partial is made, and made after OUT.partial is durable, so it always belongs
/// to the file beside it.
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
