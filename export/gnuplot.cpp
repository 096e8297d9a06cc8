#include "export/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/interrupt.h"
#include "io/file.h"

extern char** environ;

namespace kvs {
namespace {

constexpr std::size_t kLargestFigure = 256UL << 20;

[[noreturn]] void fail(std::string_view problem) { throw Error(ErrorCode::kEnvironment, "gnuplot", problem); }

/// A directory that only this user can read, and that goes with the object.
class PrivateDirectory {
 public:
  PrivateDirectory() {
    std::error_code error;
    std::filesystem::path base = std::filesystem::temp_directory_path(error);
    if (error) fail("no directory for temporary files: " + error.message());
    std::string name = (base / "kvspectrum-figure-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      fail("cannot make a directory in " + base.string() + ": " + std::strerror(errno));
    }
    path_ = name;
  }
  ~PrivateDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
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
  void directory(const char* path) { ::posix_spawn_file_actions_addchdir_np(&actions_, path); }
  const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
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

pid_t start(const std::filesystem::path& directory) {
  SpawnFiles files;
  files.directory(directory.c_str());
  files.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  files.open(STDOUT_FILENO, "messages", O_WRONLY | O_CREAT | O_APPEND);
  files.open(STDERR_FILENO, "messages", O_WRONLY | O_CREAT | O_APPEND);
  std::string program = "gnuplot", no_startup_files = "-d", script = "script.gp";
  const std::array<char*, 4> arguments{program.data(), no_startup_files.data(), script.data(), nullptr};
  std::vector<std::string> variables = plain_environment();
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  pid_t child = 0;
  const int status =
      ::posix_spawnp(&child, program.c_str(), files.get(), nullptr, arguments.data(), environment.data());
  if (status == ENOENT) fail("not found, expected on PATH (Debian: apt-get install gnuplot-nox)");
  if (status != 0) fail(std::string("cannot be started: ") + std::strerror(status));
  return child;
}

/// gnuplot's own words: its last lines that are not blank, as one line.
std::string last_words(const std::filesystem::path& messages) {
  std::string text = read_text_file(messages, kLargestFigure);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

std::vector<std::string> run_gnuplot(std::string_view script, std::span<const std::string> outputs) {
  const PrivateDirectory directory;
  write_file_atomically(directory.path() / "script.gp", script, false);
  const pid_t child = start(directory.path());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail(std::string("cannot be waited for: ") + std::strerror(errno));
  }
  check_interrupt();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail("failed: " + last_words(directory.path() / "messages"));
  std::vector<std::string> contents;
  for (const std::string& name : outputs) {
    const std::filesystem::path path = directory.path() / name;
    if (!std::filesystem::exists(path))
      fail("did not write " + name + ": " + last_words(directory.path() / "messages"));
    contents.push_back(read_text_file(path, kLargestFigure));
  }
  return contents;
}

}  // namespace kvs
