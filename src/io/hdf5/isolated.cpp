// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/isolated.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <fstream>
#include <new>

#include "core/checked.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "io/descriptor.h"

namespace kvs::inline io {
namespace {

/// First byte of a child's message, followed by its result, or by an error as "<digits of its code> <what()>".
constexpr char kResult = 'R', kError = 'E';

void limit(decltype(RLIMIT_AS) resource, rlim_t value) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return;
  now.rlim_max = now.rlim_max == RLIM_INFINITY ? value : std::min<rlim_t>(now.rlim_max, value);
  now.rlim_cur = std::min<rlim_t>(value, now.rlim_max);
  ::setrlimit(resource, &now);
}

/// Returns the size of this process's address space in bytes.
std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Returns true if the caller's limit (ulimit -v) leaves a child less than `bytes`.
bool is_cramped(std::size_t bytes) {
  rlimit now{};
  return ::getrlimit(RLIMIT_AS, &now) == 0 && now.rlim_cur != RLIM_INFINITY && now.rlim_cur < address_space() + bytes;
}

bool send(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::write(descriptor, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string run_task(const std::function<std::string()>& task) {
  const auto failure = [](ErrorCode code, std::string_view what) {
    return kError + std::to_string(static_cast<int>(code)) + " " + std::string(what);
  };
  try {
    return kResult + task();
  } catch (const Error& error) {
    return failure(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return failure(ErrorCode::kInput, "HDF5: the file asks for more memory than a capture can need");
  } catch (const std::exception& error) {
    return failure(ErrorCode::kInternal, std::string("HDF5: ") + error.what());
  }
}

[[noreturn]] void be_child(int output, const std::function<std::string()>& task, const IsolationLimits& limits) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) ::signal(number, SIG_DFL);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CPU, limits.cpu_seconds);
  limit(RLIMIT_AS, address_space() + limits.memory_bytes);
  ::_exit(send(output, run_task(task)) ? 0 : 1);
}

std::string receive(int descriptor, std::size_t most) {
  std::string text;
  std::array<char, 4096> block{};  // on the stack, which may be small
  for (;;) {
    const ssize_t got = ::read(descriptor, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || text.size() + static_cast<std::size_t>(got) > most) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
}

[[noreturn]] void rethrow(std::string_view file, std::string_view text) {
  const std::size_t space = text.find(' ');
  const auto code = parse_integer<int>(text.substr(0, space));
  if (!code || space == std::string_view::npos)
    throw Error(ErrorCode::kInput, file, "the HDF5 library failed on this file");
  const std::string_view what = text.substr(space + 1);
  // what() is "WHERE: PROBLEM". Splitting it at any ": " gives the same line again.
  const std::size_t colon = what.find(": ");
  if (colon == std::string_view::npos) throw Error(static_cast<ErrorCode>(*code), file, what);
  throw Error(static_cast<ErrorCode>(*code), what.substr(0, colon), what.substr(colon + 2));
}

std::string result_of_child(std::string_view file, const std::function<std::string()>& task,
                            const IsolationLimits& limits) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw_errno(ErrorCode::kEnvironment, file, "cannot make a pipe to read it", errno);
  const Descriptor input(ends[0]);
  Descriptor output(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw_errno(ErrorCode::kEnvironment, file, "cannot start a process to read it", errno);
  if (child == 0) be_child(output.get(), task, limits);
  output.close();
  const std::string text = receive(input.get(), limits.result_bytes);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  check_interrupt();
  if (WIFSIGNALED(status))
    throw Error(ErrorCode::kInput, file,
                "the HDF5 library failed on this file (signal " + std::to_string(WTERMSIG(status)) + ")");
  if (text.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(ErrorCode::kInput, file, "the HDF5 library failed on this file");
  if (text[0] == kError) rethrow(file, std::string_view(text).substr(1));
  return text.substr(1);
}

}  // namespace

std::string run_isolated(std::string_view file, const std::function<std::string()>& task, IsolationLimits limits) {
  const bool cramped = is_cramped(limits.memory_bytes);
  try {
    return result_of_child(file, task, limits);
  } catch (const Error& error) {
    // The HDF5 library reports lack of memory as damage.
    if (!cramped || error.code() != ErrorCode::kInput) throw;
    throw Error(ErrorCode::kEnvironment, "memory",
                "found less than " + std::to_string(limits.memory_bytes >> 20) +
                    " MiB of address space, which the HDF5 library may take; without them: " + error.what());
  }
}

}  // namespace kvs::inline io
