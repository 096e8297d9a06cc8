// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/file_kind.h"
#include "io/staged_output.h"

namespace kvs::inline io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = 1UL << 20;

std::int64_t modified_ns(const struct stat& status) noexcept {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// @param result  the return value of a stat call on `path`
bool is_found(int result, const fs::path& path) {
  if (result == 0) return true;
  if (code_of_read_errno(errno) == ErrorCode::kEnvironment)
    throw_errno(ErrorCode::kEnvironment, path, "cannot stat", errno);
  return false;
}

/// Calls write(rest) until all bytes are written.
template <class Write>
void write_all(const fs::path& path, std::span<const std::byte> bytes, Write write) {
  while (!bytes.empty()) {
    const ssize_t written = write(bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_errno(ErrorCode::kEnvironment, path, "cannot write", written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

/// Returns the first kKindBytes bytes, or fewer from a shorter file: enough to recognise a file's kind.
std::string first_bytes(const Descriptor& file, const fs::path& path) {
  std::string bytes(kKindBytes, '\0');
  ssize_t got = 0;
  do got = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  while (got < 0 && errno == EINTR);
  if (got < 0) throw_errno(code_of_read_errno(errno), path, "cannot read", errno);
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

}  // namespace

bool find_status(const fs::path& path, struct stat& status) { return is_found(::stat(path.c_str(), &status), path); }
bool find_link_status(const fs::path& path, struct stat& status) {
  return is_found(::lstat(path.c_str(), &status), path);
}
bool is_there(const fs::path& path) {
  struct stat status {};
  return find_status(path, status);
}

Descriptor open_regular(const fs::path& path, struct stat& status) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  Descriptor file = open_descriptor(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file.is_open()) throw_errno(code_of_read_errno(errno), path, "cannot open", errno);
  if (::fstat(file.get(), &status) != 0) throw_errno(ErrorCode::kEnvironment, path, "cannot stat", errno);
  if (S_ISDIR(status.st_mode)) throw Error(ErrorCode::kInput, path.native(), "found a directory, expected a file");
  if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::kInput, path.native(), "expected a regular file");
  refuse_lfs_pointer(first_bytes(file, path), path.native());
  return file;
}

fs::path resolve_output(fs::path path) {
  for (int links = 0; links < 40; ++links) {
    struct stat status {};
    if (!find_link_status(path, status) || !S_ISLNK(status.st_mode)) return path;
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) throw_errno(ErrorCode::kEnvironment, path, "cannot follow the link", error.value());
    path = target.is_absolute() ? target : directory_of(path) / target;
  }
  throw_errno(ErrorCode::kEnvironment, path, "cannot follow the link", ELOOP);
}

fs::path full_output_path(const fs::path& path, std::error_code& error) {
  const fs::path absolute = fs::absolute(resolve_output(path), error);  // weakly_canonical() leaves "new" relative
  return error ? absolute : fs::weakly_canonical(absolute, error);
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  struct stat status {};
  const Descriptor file = open_regular(path, status);
  if (status.st_size == 0) throw Error(ErrorCode::kInput, path.native(), "the file is empty");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) throw_errno(code_of_read_errno(errno), path, "cannot map", errno);
  bytes_ = {static_cast<const std::byte*>(start), size};
  inode_ = status.st_ino;
  modified_ns_ = modified_ns(status);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      inode_(other.inode_),
      modified_ns_(other.modified_ns_) {}

void MappedFile::check_unchanged() const {
  struct stat status {};
  if (!find_status(path_, status) || static_cast<std::size_t>(status.st_size) != bytes_.size() ||
      status.st_ino != inode_ || modified_ns(status) != modified_ns_)
    throw Error(ErrorCode::kInput, path_.native(), "changed while reading");
}

void MappedFile::release(std::span<const std::byte> bytes) const noexcept {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::less<const std::byte*> before;  // also orders pointers into different files
  if (before(bytes.data(), bytes_.data()) || before(bytes_.data() + bytes_.size(), bytes.data() + bytes.size())) return;
  const auto begin = static_cast<std::size_t>(bytes.data() - bytes_.data());  // the mapping starts on a page
  const std::size_t first = (begin + page - 1) / page * page, last = (begin + bytes.size()) / page * page;
  // Safe only on this file's private read-only mapping: on other memory MADV_DONTNEED would lose the contents.
  if (first < last) (void)::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
}

std::string read_text_file(const fs::path& path, std::size_t limit) {
  struct stat status {};
  const Descriptor file = open_regular(path, status);
  const auto too_large = [&](const std::string& size) {
    return Error(ErrorCode::kInput, path.native(),
                 "found " + size + " bytes, expected at most " + std::to_string(limit));
  };
  const auto stated = static_cast<std::size_t>(status.st_size);
  if (stated > limit) throw too_large(std::to_string(stated));
  std::string text;
  // One byte more than the stated size, so that one read reaches the end of a file of that size.
  for (std::size_t room = stated + 1;; room = kPieceBytes) {
    const std::size_t used = text.size();
    text.resize(used + room);
    const ssize_t got = ::read(file.get(), text.data() + used, room);
    const int error = errno;
    text.resize(used + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && error == EINTR) continue;
    if (got < 0) throw_errno(code_of_read_errno(error), path, "cannot read", error);
    if (got == 0) return text;
    if (text.size() > limit) throw too_large("over " + std::to_string(limit));
  }
}

void copy_regular_file(const fs::path& from, const fs::path& to) {
  struct stat status {};
  (void)open_regular(from, status);  // reports what is wrong with the file
  std::error_code error;
  fs::copy_file(from, to, error);
  if (error) throw_errno(ErrorCode::kEnvironment, from, "cannot be copied to the output", error.value());
}

void write_at(int descriptor, const fs::path& path, std::span<const std::byte> bytes, std::uint64_t offset) {
  write_all(path, bytes, [&](std::span<const std::byte> rest) {
    return ::pwrite(descriptor, rest.data(), rest.size(), static_cast<off_t>(offset + bytes.size() - rest.size()));
  });
}

void append_to(int descriptor, const fs::path& path, std::span<const std::byte> bytes) {
  write_all(path, bytes,
            [&](std::span<const std::byte> rest) { return ::write(descriptor, rest.data(), rest.size()); });
}

void refuse_existing(const fs::path& output, const std::string& what) {
  throw Error(ErrorCode::kConflict, output.native(),
              "found a " + what + " that exists, expected a free name, or --force to replace it");
}

void refuse_unfinished(const fs::path& kept) {
  throw Error(ErrorCode::kConflict, kept.string(),
              "found an unfinished run, expected --resume to go on or --force to drop it");
}

void sync_directory(const fs::path& directory) {
  const Descriptor folder = open_descriptor(directory, O_RDONLY | O_DIRECTORY);
  if (!folder.is_open()) throw_errno(ErrorCode::kEnvironment, directory, "cannot open the directory", errno);
  // EINVAL: the file system has no fsync for directories, so nothing more can be done.
  if (::fsync(folder.get()) != 0 && errno != EINVAL)
    throw_errno(ErrorCode::kEnvironment, directory, "cannot sync the directory", errno);
}

void check_output(const fs::path& output, bool force) {
  if (output.native().find('\0') != std::string::npos || !output.has_filename())
    throw Error(ErrorCode::kUsage, output.native(), "expected the name of an output file");
  const fs::path resolved = resolve_output(output), directory = directory_of(resolved);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0)
    throw_errno(ErrorCode::kEnvironment, directory, "cannot use the output directory", errno);
  if (!S_ISDIR(status.st_mode)) throw Error(ErrorCode::kEnvironment, directory.native(), "expected a directory");
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    throw_errno(ErrorCode::kEnvironment, directory, "cannot write in the output directory", errno);
  if (::lstat(resolved.c_str(), &status) != 0) {
    if (errno == ENOENT) return;
    throw_errno(ErrorCode::kEnvironment, resolved, "cannot use the output", errno);
  }
  if (S_ISDIR(status.st_mode))
    throw Error(ErrorCode::kEnvironment, output.native(), "found a directory, expected a file");
  if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::kEnvironment, output.native(), "the output is no regular file");
  if (!force) refuse_existing(output);
}

void write_file_atomically(const fs::path& output, std::string_view bytes, bool force) {
  StagedOutput staged(output, StagedOutput::Kind::kFile);
  write_staged(staged.path(), bytes);
  staged.commit(force);
}

}  // namespace kvs::inline io
