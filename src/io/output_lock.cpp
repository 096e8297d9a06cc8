// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/checked.h"
#include "core/error.h"
#include "io/descriptor.h"
#include "io/dying_program.h"
#include "io/file.h"

namespace kvs::inline io {
namespace {

namespace fs = std::filesystem;

/// Returns the content of a lock file: "" just after its creation, else "PID\n". Returns nullopt for a file that is not
/// one of our lock files.
std::optional<std::string> read_owner(int descriptor, const fs::path& path) {
  std::array<char, 32> text{};
  ssize_t size = 0;
  do size = ::pread(descriptor, text.data(), text.size(), 0);
  while (size < 0 && errno == EINTR);
  if (size < 0) throw_errno(ErrorCode::kEnvironment, path, "cannot read", errno);
  if (size == 0) return "";
  const std::string_view line(text.data(), static_cast<std::size_t>(size));
  if (line.back() != '\n' || !parse_integer<int>(line.substr(0, line.size() - 1))) return std::nullopt;
  return std::string(line.substr(0, line.size() - 1));
}

/// Returns false if the name leads elsewhere: its last holder removed the file between our open and our flock.
bool is_still_named(int descriptor, const fs::path& path) {
  struct stat ours {
  }, named{};
  if (::fstat(descriptor, &ours) != 0) throw_errno(ErrorCode::kEnvironment, path, "cannot stat", errno);
  return find_link_status(path, named) && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

/// Writes this process's id into a locked lock file.
void write_owner(int descriptor, const fs::path& path) {
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(descriptor, 0) != 0) throw_errno(ErrorCode::kEnvironment, path, "cannot write", errno);
  write_at(descriptor, path, std::as_bytes(std::span(text)), 0);
}

/// Removes the file while it is still locked: after the close, another process may already hold a lock with this name.
void let_go(int descriptor, const fs::path& path) noexcept {
  ::unlink(path.c_str());
  ::close(descriptor);
  forget_with_program(path);
}

void take_flock(int descriptor, const fs::path& path) {
  int result = 0;
  do result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  if (result == 0) return;
  if (errno != EWOULDBLOCK)
    throw_errno(ErrorCode::kEnvironment, path, "cannot lock (--no-lock goes on without a lock)", errno);
  const std::string owner = read_owner(descriptor, path).value_or("");
  throw Error(ErrorCode::kConflict, path.native(),
              "the output is being written by " + (owner.empty() ? "another process" : "process " + owner));
}

/// Cleans up for a run that cannot lock: removes an empty file (our own) and keeps a file that names its holder.
void remove_nobodys(int descriptor, const fs::path& path) noexcept {
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && status.st_size == 0) ::unlink(path.c_str());
}

struct Temporary {
  std::string output;
  int pid = 0;
};

/// Parses `name` as a temporary of the output (a StagedOutput's ".OUTPUT.<pid>.tmp"), of a file next to it
/// (".OUTPUT.journal.<pid>.tmp"), or of another output whose name begins with OUTPUT.
std::optional<Temporary> temporary_of(const std::string& name, const std::string& output) {
  const std::string start = "." + output + ".", end = ".tmp";
  if (!name.starts_with(start) || !name.ends_with(end) || name.size() <= start.size() + end.size()) return std::nullopt;
  const std::string whole = name.substr(1, name.size() - 1 - end.size());  // OUTPUT.<pid>
  const std::size_t dot = whole.rfind('.');
  const auto pid = parse_integer<int>(std::string_view(whole).substr(dot + 1));
  return pid && *pid > 0 ? std::optional<Temporary>({whole.substr(0, dot), *pid}) : std::nullopt;
}

/// Removes temporaries of `output`, which is locked, that a killed process left.
/// @param last_holder  of the lock, 0 for none. It no longer writes, even if the id still exists: as a zombie process
///         or as a new process with that id.
void remove_stale_temporaries(const fs::path& output, int last_holder) {
  const fs::path folder = directory_of(output);
  const std::string name = output.filename().native().substr(0, 200);
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const auto found = temporary_of(entry->path().filename().native(), name);
    if (!found || (found->output != name && fs::exists(folder / (found->output + ".lock"), ignored))) continue;
    std::error_code kept;
    if (found->pid == last_holder || (::kill(found->pid, 0) != 0 && errno == ESRCH))
      fs::remove_all(entry->path(), kept);
  }
}

}  // namespace

OutputLock::OutputLock(const fs::path& output, bool enabled, std::span<const fs::path> others) {
  if (!enabled) return;
  const fs::path target = resolve_output(output);
  std::vector<fs::path> written{target};  // resolved before a lock exists: a failure leaves no lock file
  for (const fs::path& other : others) written.push_back(resolve_output(other));
  path_ = target;
  path_ += ".lock";
  for (;;) {
    Descriptor file = open_descriptor(path_, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (!file.is_open()) throw_errno(ErrorCode::kEnvironment, path_, "cannot create the lock file", errno);
    std::optional<std::string> last_holder;
    try {
      take_flock(file.get(), path_);
      if (!is_still_named(file.get(), path_)) continue;
      last_holder = read_owner(file.get(), path_);
      // A user's file that happens to have this name must be neither overwritten nor deleted.
      if (!last_holder) throw Error(ErrorCode::kConflict, path_.native(), "exists and is no lock file");
    } catch (const std::exception& failure) {
      const auto* const error = dynamic_cast<const Error*>(&failure);
      if (error == nullptr || error->code() == ErrorCode::kEnvironment) remove_nobodys(file.get(), path_);
      throw;
    }
    descriptor_ = file.release();
    try {
      remove_with_program(path_);
      write_owner(descriptor_, path_);
      const int last = parse_integer<int>(*last_holder).value_or(0);
      for (const fs::path& one : written) remove_stale_temporaries(one, last);
    } catch (...) {  // the constructor failed, so no destructor runs
      let_go(descriptor_, path_);
      throw;
    }
    return;
  }
}

OutputLock::OutputLock(OutputLock&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputLock::~OutputLock() {
  if (descriptor_ >= 0) let_go(descriptor_, path_);
}

}  // namespace kvs::inline io
