// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace kvs::inline io {

/// Throws "PATH: ACTION: <errno text>". Takes errno as an argument because building a message may change errno.
[[noreturn]] inline void throw_errno(ErrorCode code, const std::filesystem::path& path, std::string_view action,
                                     int error) {
  throw Error(code, path.native(), std::string(action) + ": " + std::generic_category().message(error));
}

/// Owns one file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) noexcept : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int get() const noexcept { return value_; }
  bool is_open() const noexcept { return value_ >= 0; }
  int release() noexcept { return std::exchange(value_, -1); }
  /// Returns 0 or errno. The descriptor is gone in both cases: Linux forbids a second close after an error.
  int close() noexcept { return ::close(std::exchange(value_, -1)) == 0 ? 0 : errno; }

 private:
  int value_;
};

/// Calls open(2) with O_CLOEXEC and retries after EINTR. A path with a NUL byte, which open would cut, gives ENOENT.
inline Descriptor open_descriptor(const std::filesystem::path& path, int flags, mode_t mode = 0) noexcept {
  if (path.native().find('\0') != std::string::npos) {
    errno = ENOENT;
    return Descriptor();
  }
  int value = -1;
  do value = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (value < 0 && errno == EINTR);
  return Descriptor(value);
}

/// Returns the directory that holds `path`, or "." if the path names none.
inline std::filesystem::path directory_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

/// Returns kEnvironment if descriptors or memory ran out or the disk fails; else kInput, as the file is at fault.
inline ErrorCode code_of_read_errno(int error) noexcept {
  const bool environment = error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
  return environment ? ErrorCode::kEnvironment : ErrorCode::kInput;
}

/// Returns true and fills `status` if `path` exists (links are followed). @throws Error kEnvironment if a failing disk
/// or lack of memory prevents the answer.
bool find_status(const std::filesystem::path& path, struct stat& status);
bool is_there(const std::filesystem::path& path);
/// Like find_status(), but does not follow a symbolic link in the last component.
bool find_link_status(const std::filesystem::path& path, struct stat& status);

/// Opens a regular file for reading and fills its status. Does not wait on a FIFO.
/// @throws Error kInput if it is missing, not a regular file or a Git LFS pointer; kEnvironment without descriptors.
Descriptor open_regular(const std::filesystem::path& path, struct stat& status);

/// Follows every symbolic link in the last component of `path`, even if the target does not exist yet.
/// @throws Error kEnvironment for a link that cannot be read or a chain of more than 40.
std::filesystem::path resolve_output(std::filesystem::path path);

/// Like resolve_output(), and removes links, "." and ".." everywhere: two names of one file become equal, even if the
/// file does not exist yet.
std::filesystem::path full_output_path(const std::filesystem::path& path, std::error_code& error);

}  // namespace kvs::inline io
