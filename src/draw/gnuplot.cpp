#include "draw/gnuplot.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "core/error.h"
#include "core/interrupt.h"
#include "io/file.h"

extern char** environ;

namespace kvs {
namespace {

constexpr std::size_t kLargestFigure = 256UL << 20;
/// With fewer gnuplot finds no fonts, says nothing and draws without letters.
constexpr std::size_t kLeastDescriptors = 32;

[[noreturn]] void fail(std::string_view problem) { throw Error(ErrorCode::kEnvironment, "gnuplot", problem); }
constexpr std::string_view kMissing = "not found, expected on PATH (Debian: apt-get install gnuplot-nox)";

/// A file without a name, in memory: nothing is left of it when this process and gnuplot have ended, however they end.
class MemoryFile {
 public:
  explicit MemoryFile(const char* label) {
    const int made = ::memfd_create(label, MFD_CLOEXEC);
    descriptor_ = made < 0 ? -1 : ::fcntl(made, F_DUPFD_CLOEXEC, 3);  // never a standard stream, if those are closed
    const int error = errno;
    if (made >= 0) ::close(made);
    if (descriptor_ < 0) fail(std::string("no file in memory: ") + std::strerror(error));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int descriptor() const noexcept { return descriptor_; }
  /// By this name this process and one that inherits the descriptor open the file.
  std::string path() const { return "/dev/fd/" + std::to_string(descriptor_); }
  std::string text() const { return read_text_file(path(), kLargestFigure); }
  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail(std::string("its script cannot be written: ") + std::strerror(errno));
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

 private:
  int descriptor_ = -1;
};

class SpawnFiles {
 public:
  SpawnFiles() { ::posix_spawn_file_actions_init(&actions_); }
  ~SpawnFiles() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnFiles(const SpawnFiles&) = delete;
  SpawnFiles& operator=(const SpawnFiles&) = delete;
  void open(int descriptor, const char* path, int flags) {
    ::posix_spawn_file_actions_addopen(&actions_, descriptor, path, flags, 0600);
  }
  /// `descriptor` becomes `as`; the same number only lets the program inherit it.
  void pass(int descriptor, int as) { ::posix_spawn_file_actions_adddup2(&actions_, descriptor, as); }
  const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// It minds no write that fails; with SIGXFSZ as it was before this program ignored that, a limit of file sizes ends
/// it.
class SpawnSignals {
 public:
  SpawnSignals() {
    sigset_t heeded;
    ::sigemptyset(&heeded);
    for (const int signal : {SIGXFSZ, SIGPIPE}) ::sigaddset(&heeded, signal);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigdefault(&attributes_, &heeded);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSignals() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnSignals(const SpawnSignals&) = delete;
  SpawnSignals& operator=(const SpawnSignals&) = delete;
  const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

/// This process's environment, with numbers written and messages worded the same everywhere.
std::vector<std::string> plain_environment() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (!variable.starts_with("LC_") && !variable.starts_with("LANG") && !variable.starts_with("GNU")) {
      variables.emplace_back(variable);
    }
  }
  variables.emplace_back("LC_ALL=C.UTF-8");
  return variables;
}

pid_t start(const MemoryFile& script, const MemoryFile& messages,
            std::span<const std::unique_ptr<MemoryFile>> outputs) {
  SpawnFiles files;
  files.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  files.pass(messages.descriptor(), STDOUT_FILENO);
  files.pass(messages.descriptor(), STDERR_FILENO);
  files.pass(script.descriptor(), script.descriptor());
  for (const auto& output : outputs) files.pass(output->descriptor(), output->descriptor());
  std::string program = "gnuplot", no_startup_files = "-d", path = script.path();
  const std::array<char*, 4> arguments{program.data(), no_startup_files.data(), path.data(), nullptr};
  std::vector<std::string> variables = plain_environment();
  std::vector<char*> environment;
  environment.reserve(variables.size() + 1);
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  const SpawnSignals signals;
  pid_t child = 0;
  const int status =
      ::posix_spawnp(&child, program.c_str(), files.get(), signals.get(), arguments.data(), environment.data());
  if (status == ENOENT) fail(kMissing);
  if (status != 0) fail(std::string("cannot be started: ") + std::strerror(status));
  return child;
}

/// gnuplot's own words: its last line that is not blank.
std::string last_words(const MemoryFile& messages) {
  std::string text = messages.text();
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

std::string ending_of(int status) {
  return WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status))
                             : "ended with status " + std::to_string(WEXITSTATUS(status));
}

void check_descriptors() {
  rlimit now{};
  if (::getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur >= kLeastDescriptors) return;
  fail("found a limit of " + std::to_string(now.rlim_cur) + " open files, expected at least " +
       std::to_string(kLeastDescriptors) + " (ulimit -n)");
}

/// What a writer without room leaves has no end.
void check_whole(std::string_view figure, const std::string& name) {
  if (is_whole_figure(figure)) return;
  fail("wrote a part of " + name + " (" + std::to_string(figure.size()) + " bytes)");
}

}  // namespace

bool is_whole_figure(std::string_view bytes) noexcept {
  const std::string_view text = bytes.substr(0, bytes.find_last_not_of('\n') + 1);
  return bytes.starts_with("\x89PNG") ? bytes.ends_with("IEND\xAE\x42\x60\x82") : text.ends_with("</svg>");
}

void check_gnuplot() {
  check_descriptors();
  const char* const folders = ::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing here sets a variable
  if (folders == nullptr) return;                // the search is then the system's own
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');)
    if (::access((folder.empty() ? "gnuplot" : folder + "/gnuplot").c_str(), X_OK) == 0) return;
  fail(kMissing);
}

std::vector<std::string> run_gnuplot(std::string_view script, std::span<const std::string> outputs) {
  check_descriptors();
  const MemoryFile commands("script"), messages("messages");
  std::vector<std::unique_ptr<MemoryFile>> files;
  for (const std::string& variable : outputs) {
    files.push_back(std::make_unique<MemoryFile>(variable.c_str()));
    commands.write(variable + " = '" + files.back()->path() + "'\n");
  }
  commands.write(script);
  const pid_t child = start(commands, messages, files);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno == ECHILD) break;  // a process that ignores SIGCHLD: what was written tells
    if (errno != EINTR) fail(std::string("cannot be waited for: ") + std::strerror(errno));
  }
  check_interrupt();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail(ending_of(status) + ": " + last_words(messages));
  std::vector<std::string> contents;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    contents.push_back(files[i]->text());
    if (contents.back().empty()) fail("did not write " + outputs[i] + ": " + last_words(messages));
    check_whole(contents.back(), outputs[i]);
  }
  return contents;
}

}  // namespace kvs
