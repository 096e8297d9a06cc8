// SPDX-License-Identifier: Apache-2.0
#include "ranks/watch.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "core/error.h"
#include "core/interrupt.h"

namespace kvs::inline ranks {
namespace {

constexpr int kParentDied = SIGUSR2;
constexpr int kForwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGCONT};

/// Shared by a rank and the process that watches it.
std::atomic<std::uint64_t>* g_document = nullptr;  // number of the document + 1; 0: none yet
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::array<char, 512> g_who{};  // "PROGRAM: error: rank R on HOST: "
pid_t g_child = 0;
volatile std::sig_atomic_t g_ending = 0;  // this process was asked to end

/// Prints a line on standard error, with async-signal-safe calls only.
void say(const char* what, int number) noexcept {
  std::array<char, 800> line{};
  char* end = line.data();
  const auto add = [&](const char* text) {
    while (*text != '\0' && end < line.data() + line.size() - 32) *end++ = *text++;
  };
  const auto add_number = [&](std::uint64_t value) { end = std::to_chars(end, end + 24, value).ptr; };
  add(g_who.data());
  add(what);
  if (number != 0) add_number(static_cast<std::uint64_t>(number));
  const std::uint64_t document = g_document->load();
  add(document == 0 ? " before its first document" : " at document ");
  if (document != 0) add_number(document - 1);
  add("; --resume continues with any number of ranks\n");
  (void)!::write(STDERR_FILENO, line.data(), static_cast<std::size_t>(end - line.data()));
}

extern "C" void on_parents_death(int) {
  if (pending_signal() == 0) say("the process that watched it was killed", 0);
  ::_exit(static_cast<int>(ErrorCode::kEnvironment));
}

extern "C" void forward(int signal) {
  if (signal != SIGCONT) g_ending = 1;
  ::kill(g_child, signal);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

/// Returns true if the program itself ends with this status (docs/errors.md). MPI ends it with other statuses.
bool is_own_status(int status) noexcept {
  return status == 0 ||
         (status >= static_cast<int>(ErrorCode::kUsage) && status <= static_cast<int>(ErrorCode::kConflict)) ||
         status == static_cast<int>(ErrorCode::kInternal) || (status > 128 && status < 128 + 32);
}

[[noreturn]] void watch() {
  for (const int signal : kForwarded) handle(signal, forward);
  int status = 0;
  while (::waitpid(g_child, &status, 0) < 0 && errno == EINTR) {
  }
  const bool killed = WIFSIGNALED(status);
  const int code = killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (g_ending != 0 || (!killed && is_own_status(code))) ::_exit(code);
  if (killed)
    say("was killed by signal ", WTERMSIG(status));
  else
    say("was ended by MPI, whose lines say why, with status ", code);
  ::_exit(static_cast<int>(ErrorCode::kEnvironment));
}

}  // namespace

void watch_rank(std::string_view program, const Launch& launch) {
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  const std::string who =
      std::string(program) + ": error: rank " + std::to_string(launch.rank) + " on " + host.data() + ": ";
  std::strncpy(g_who.data(), who.c_str(), g_who.size() - 1);
  void* const page =
      ::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  g_document = new (page) std::atomic<std::uint64_t>(0);
  const pid_t parent = ::getpid();
  g_child = ::fork();
  if (g_child < 0) throw Error(ErrorCode::kEnvironment, "system", std::string("cannot fork: ") + std::strerror(errno));
  if (g_child > 0) watch();
  (void)::setpgid(0, 0);  // signals reach the child only through the parent
  handle(kParentDied, on_parents_death);
  (void)::prctl(PR_SET_PDEATHSIG, kParentDied);
  if (::getppid() != parent) ::raise(kParentDied);
}

void note_document(std::uint64_t document) noexcept {
  if (g_document != nullptr) g_document->store(document + 1);
}

}  // namespace kvs::inline ranks
