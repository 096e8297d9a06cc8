// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvs::inline io {

/// A regular file mapped read-only. Not copyable. The bytes live as long as the object.
class MappedFile {
 public:
  /// @throws Error kInput if `path` is missing, not a regular file, empty or cannot be mapped; symlinks are followed.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// @throws Error kInput "changed while reading" if the file's size, inode or modification time differs from the
  ///         mapped one.
  void check_unchanged() const;
  /// Removes the whole pages within `bytes` from this process's resident memory if they belong to this file. The next
  /// access maps them again, mostly from the system's page cache.
  void release(std::span<const std::byte> bytes) const noexcept;

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
  std::uint64_t inode_ = 0;
  std::int64_t modified_ns_ = 0;
};

/// Returns the contents of a regular file. @throws Error kInput if missing, a directory, unreadable or above `limit`.
std::string read_text_file(const std::filesystem::path& path, std::size_t limit);

/// Copies a regular file to a new name. @throws Error kInput, naming `from`, as read_text_file; kEnvironment.
void copy_regular_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// Holds an exclusive flock on "OUT.lock" while the object lives. The lock file holds this process's id and is removed
/// on release. The lock file of a dead process is taken over, and its temporaries are removed.
class OutputLock {
 public:
  /// @throws Error kConflict naming the pid if another process holds it; kEnvironment if the directory is missing or
  ///         read-only, or locks are not supported (with the hint --no-lock).
  /// @param others  outputs that are written under the lock of `output`
  explicit OutputLock(const std::filesystem::path& output, bool enabled = true,
                      std::span<const std::filesystem::path> others = {});
  ~OutputLock();
  OutputLock(OutputLock&& other) noexcept;
  OutputLock& operator=(OutputLock&&) = delete;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Fails early, before long work. @throws Error kConflict if `output` exists and !force; kEnvironment if its directory
/// is missing or not writable or `output` is a directory.
void check_output(const std::filesystem::path& output, bool force);

/// Writes `bytes` to a temporary in the same directory, fsyncs, renames it over `output` and fsyncs the directory. At
/// every moment `output` is the old file or the whole new file. A symlink is resolved first.
/// @throws Error kConflict if `output` exists and !force (RENAME_NOREPLACE); kEnvironment on any I/O failure, with the
///         temporary removed and the old file untouched.
void write_file_atomically(const std::filesystem::path& output, std::string_view bytes, bool force);

/// @throws Error kConflict: a file (or a folder) exists already.
[[noreturn]] void refuse_existing(const std::filesystem::path& output, const std::string& what = "file");
/// @throws Error kConflict: the state of an unfinished run exists.
[[noreturn]] void refuse_unfinished(const std::filesystem::path& kept);

/// Writes all of `bytes` at `offset`, despite short writes and EINTR. @throws Error kEnvironment with path and errno.
void write_at(int descriptor, const std::filesystem::path& path, std::span<const std::byte> bytes,
              std::uint64_t offset);

/// Like write_at(), but writes at the file position, or at the end of a file opened to append.
void append_to(int descriptor, const std::filesystem::path& path, std::span<const std::byte> bytes);

/// Calls fsync on a directory, so that a rename in it survives a crash. @throws Error kEnvironment.
void sync_directory(const std::filesystem::path& directory);

}  // namespace kvs::inline io
