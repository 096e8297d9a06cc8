// SPDX-License-Identifier: Apache-2.0
#include "draw/png.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>

#include "core/error.h"
#include "core/interrupt.h"
#include "io/file.h"

extern char** environ;

namespace kvs::draw {
namespace {

constexpr std::chrono::milliseconds kLook{2};

constexpr std::size_t kLargestPicture = 256UL << 20;

[[noreturn]] void fail(const std::string& problem) { throw Error(ErrorCode::kEnvironment, "rsvg-convert", problem); }

class TooLate {};

/// An anonymous file in memory: nothing remains of it when this process and its child have ended.
class MemoryFile {
 public:
  MemoryFile() {
    const int made = ::memfd_create("figure", MFD_CLOEXEC);
    descriptor_ = made < 0 ? -1 : ::fcntl(made, F_DUPFD_CLOEXEC, 3);  // never 0 to 2, even if those are closed
    const int error = errno;
    if (made >= 0) ::close(made);
    if (descriptor_ < 0) fail(std::string("no file in memory: ") + std::strerror(error));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int descriptor() const noexcept { return descriptor_; }

  std::string text() const { return read_text_file("/dev/fd/" + std::to_string(descriptor_), kLargestPicture); }

 private:
  int descriptor_ = -1;
};

/// Settings of the child: its standard streams, and signals as a shell would set them.
class SpawnSettings {
 public:
  SpawnSettings(const MemoryFile& input, const MemoryFile& output, const MemoryFile& messages) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_adddup2(&files_, input.descriptor(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files_, output.descriptor(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files_, messages.descriptor(), STDERR_FILENO);
    sigset_t heeded;
    ::sigemptyset(&heeded);
    for (const int signal : {SIGXFSZ, SIGPIPE}) ::sigaddset(&heeded, signal);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigdefault(&attributes_, &heeded);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  pid_t start() const {
    std::string program = "rsvg-convert", format = "--format=png", zoom = "--zoom=2";
    const std::array<char*, 4> words{program.data(), format.data(), zoom.data(), nullptr};
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, program.c_str(), &files_, &attributes_, words.data(), environ);
    if (error == ENOENT) fail("not found on PATH (Debian: apt-get install librsvg2-bin fonts-dejavu-core)");
    if (error != 0) fail(std::string("cannot be started: ") + std::strerror(error));
    return child;
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

/// Waits for the child. Ends the child after `patience` or when this process gets a signal. @return its status, or 0 if
/// the system does not report one (a process that ignores SIGCHLD)
int wait_for(pid_t child, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  int status = 0;
  bool late = false;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, late ? 0 : WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return 0;
    late = late || pending_signal() != 0 || std::chrono::steady_clock::now() > deadline;
    if (late)
      ::kill(child, SIGKILL);
    else
      std::this_thread::sleep_for(kLook);
  }
  check_interrupt();
  if (late) throw TooLate();
  return status;
}

/// Returns the last line of the child's messages that is not blank.
std::string last_words(const MemoryFile& messages) {
  std::string text = messages.text();
  text.erase(text.find_last_not_of(" \n\r\t") + 1);
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

std::string converted(std::string_view svg, std::chrono::milliseconds patience) {
  const MemoryFile input, output, messages;
  write_at(input.descriptor(), "figure", std::as_bytes(std::span(svg)), 0);
  const int status = wait_for(SpawnSettings(input, output, messages).start(), patience);
  if (WIFSIGNALED(status)) fail("killed by signal " + std::to_string(WTERMSIG(status)));
  if (const int code = WEXITSTATUS(status); code != 0)
    fail("ended with status " + std::to_string(code) + ": " + last_words(messages));
  std::string picture = output.text();
  if (!picture.starts_with("\x89PNG") || !is_whole_figure(picture))
    fail("wrote no whole picture (" + std::to_string(picture.size()) + " bytes)");
  return picture;
}

}  // namespace

Png png_of(std::string_view svg, std::chrono::milliseconds patience) {
  try {
    return {converted(svg, patience)};
  } catch (const TooLate&) {
    return {"", "rsvg-convert: took longer than " + std::to_string(patience.count() / 1000) + " s", true};
  } catch (const Error& problem) {
    return {"", problem.what()};
  }
}

bool is_whole_figure(std::string_view bytes) noexcept {
  const std::string_view text = bytes.substr(0, bytes.find_last_not_of('\n') + 1);
  return bytes.starts_with("\x89PNG") ? bytes.ends_with("IEND\xAE\x42\x60\x82") : text.ends_with("</svg>");
}

}  // namespace kvs::draw
