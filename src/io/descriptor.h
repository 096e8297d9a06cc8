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

namespace kvs {

/// Throws "PATH: ACTION: <errno text>". Takes errno as an argument because building a message may change it.
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
  /// 0 or errno. The descriptor is gone either way: on Linux it must not be closed again after an error.
  int close() noexcept { return ::close(std::exchange(value_, -1)) == 0 ? 0 : errno; }

 private:
  int value_;
};

/// open(2) that goes on after EINTR, with O_CLOEXEC. A path that holds a NUL byte would be cut short: ENOENT.
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

/// The directory that holds `path`, "." when the path names none.
inline std::filesystem::path directory_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

/// Out of descriptors, memory or a failing disk is no fault of the file that is read.
inline ErrorCode code_of_read_errno(int error) noexcept {
  const bool environment = error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
  return environment ? ErrorCode::kEnvironment : ErrorCode::kInput;
}

/// Whether `path` leads to something, and what. A failing disk or want of memory is no absence. @throws Error
/// kEnvironment.
bool find_status(const std::filesystem::path& path, struct stat& status);
bool is_there(const std::filesystem::path& path);
/// The same of the last component itself, if that is a symbolic link.
bool find_link_status(const std::filesystem::path& path, struct stat& status);

/// Opens a regular file to read and gives its status. @throws Error kInput if it is missing, something else (a FIFO is
/// not waited for) or a Git LFS pointer; kEnvironment when descriptors run out.
Descriptor open_regular(const std::filesystem::path& path, struct stat& status);

/// `path` with every symbolic link in its last component followed, also when the target does not exist yet.
/// @throws Error kEnvironment for a link that cannot be read or a chain of more than 40.
std::filesystem::path resolve_output(std::filesystem::path path);

/// The same without links, "." and ".." anywhere: two names of one file that may not exist yet are equal.
std::filesystem::path full_output_path(const std::filesystem::path& path, std::error_code& error);

}  // namespace kvs
