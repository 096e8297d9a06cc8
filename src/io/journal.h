// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace kvs::inline io {

/// An append-only file of JSON lines. Line 0 identifies the run; it appears completely or not at all. Every later line
/// is one finished unit of work (a document, or a document's layer) and is durable before append() returns. A line
/// reads [RECORD,"e3069283"], where the CRC-32C covers all records so far. Reading drops a torn last line. Any other
/// line that is damaged, lost or repeated is an error.
class Journal {
 public:
  /// Creates a journal with `identity` as line 0. @throws Error kConflict if the file exists; kEnvironment on I/O
  /// errors.
  static Journal create(const std::filesystem::path& path, const Json& identity);
  /// Opens an existing journal to continue it. records() holds the records found, not those appended later.
  /// @throws Error kConflict listing every member that differs if `identity` differs from the stored one (JSON
  ///         equality); kInput if a line other than the last is damaged.
  static Journal resume(const std::filesystem::path& path, const Json& identity);
  struct Content {
    Json identity;
    std::vector<Json> records;
  };
  /// Reads a journal without changing it, for readers of an unfinished output. Ignores a torn last line.
  /// @throws Error kInput if the file is missing, empty, or a line other than the last is damaged.
  static Content read(const std::filesystem::path& path);
  /// Like read(), from the bytes of a journal. @param name  for errors
  static Content parse(std::string_view text, const std::string& name);

  Journal(Journal&&) noexcept;
  ~Journal();
  const std::vector<Json>& records() const noexcept { return records_; }
  const std::string& name() const noexcept { return path_.native(); }
  /// Returns a cursor on record n (io/record.h). Its messages name the file and line.
  JsonCursor record(std::size_t n) const { return {records_[n], name() + ": line " + std::to_string(n + 2)}; }
  /// @throws Error kEnvironment. The journal must not be used afterwards (a second fsync is not tried).
  void append(const Json& record);
  /// Deletes the file. Call it when the run's outputs are in place. Ignores a failure to delete: the run is finished.
  void remove();

 private:
  Journal(std::filesystem::path path, int descriptor, std::uint32_t crc) noexcept;
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint32_t crc_ = 0;  // of the records so far
  std::vector<Json> records_;
};

}  // namespace kvs::inline io
