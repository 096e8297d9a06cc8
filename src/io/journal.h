#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace kvs {

/// An append-only file of JSON lines, each closed by a CRC-32C. Line 0 says what run it belongs to; every later line is
/// one finished unit of work (a document, or a document's layer), appended and made durable before append()
/// returns. A torn last line is dropped on reading; a line elsewhere that is damaged, lost or repeated is an
/// error. A line reads [RECORD,"e3069283"], the CRC being that of all records up to this one. Line 0 appears whole or
/// not at all.
class Journal {
 public:
  /// A new journal with `identity` as line 0. @throws Error kConflict if the file exists; kEnvironment on I/O failure.
  static Journal create(const std::filesystem::path& path, const Json& identity);
  /// Opens an existing journal to go on with it; records() holds what it had, and nothing of what is appended.
  /// @throws Error kConflict listing every member that differs if `identity` is not the one stored (JSON equality);
  ///         kInput if a line other than the last is damaged.
  static Journal resume(const std::filesystem::path& path, const Json& identity);
  /// What a journal holds, for readers of an unfinished output: the file is not changed, a torn last line is ignored.
  /// @throws Error kInput if it is missing, empty, or a line other than the last is damaged.
  struct Content {
    Json identity;
    std::vector<Json> records;
  };
  static Content read(const std::filesystem::path& path);
  /// The same of a journal's bytes. @param name  for errors
  static Content parse(std::string_view text, const std::string& name);

  Journal(Journal&&) noexcept;
  ~Journal();
  const std::vector<Json>& records() const noexcept { return records_; }
  const std::string& name() const noexcept { return path_.native(); }
  /// Record n to read (io/record.h), which names the file and its line.
  JsonCursor record(std::size_t n) const { return {records_[n], name() + ": line " + std::to_string(n + 2)}; }
  /// @throws Error kEnvironment; afterwards the journal must not be used (no second fsync is tried).
  void append(const Json& record);
  /// Deletes the file, when its run's outputs are in place. One that cannot be deleted stays: the run is finished.
  void remove();

 private:
  Journal(std::filesystem::path path, int descriptor, std::uint32_t crc) noexcept;
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint32_t crc_ = 0;  // of the records so far
  std::vector<Json> records_;
};

}  // namespace kvs
