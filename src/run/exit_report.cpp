// SPDX-License-Identifier: Apache-2.0
#include "run/exit_report.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <system_error>

#include "core/error.h"
#include "io/dying_program.h"
#include "run/interruption.h"

namespace kvs::inline run {
namespace {

std::string_view dying_program;
std::atomic<bool> memory_ran_out = false;

/// Behaves as if there were no handler, but records that memory ran out, because std::terminate() cannot access an
/// uncaught exception.
[[noreturn]] void on_exhausted_memory() {
  memory_ran_out = true;
  throw std::bad_alloc();
}

[[noreturn]] void end(int status) noexcept {
  remove_files_of_dying_program();
  ::_exit(status);
}

[[noreturn]] void on_terminate() noexcept {
  std::set_terminate([] { end(static_cast<int>(ErrorCode::kEnvironment)); });  // no memory even for the line
  std::exception_ptr reason = std::current_exception();
  if (!reason && memory_ran_out) reason = std::make_exception_ptr(std::bad_alloc());
  end_program(reason);
}

/// No command ends with status 1.
void on_end(int status, void*) noexcept {
  if (status == EXIT_FAILURE) end(static_cast<int>(ErrorCode::kEnvironment));
}

constexpr std::string_view kInternal = "internal: ", kInterrupted = "interrupted";
constexpr std::string_view kTooLittle = "found too little, expected enough for this model and window; see the estimate";

/// Allocates no memory.  @param say  called with the kind and the rest of the line  @return the status
template <class Say>
int describe(const std::exception_ptr& failure, const Say& say) noexcept {
  const auto complain = [&](ErrorCode code, std::string_view kind, std::string_view line) {
    say(kind, line);
    return static_cast<int>(code);
  };
  try {
    if (failure) std::rethrow_exception(failure);
    return complain(ErrorCode::kInternal, kInternal, "ended without a reason");
  } catch (const Interrupted& interrupted) {
    try {
      say(kInterrupted, interruption());
    } catch (const std::bad_alloc&) {
      say(kInterrupted, "; commands that take --resume go on from here with it");
    }
    return 128 + interrupted.signal();
  } catch (const Error& error) {
    return complain(error.code(), "", error.what());
  } catch (const std::bad_alloc&) {
    return complain(ErrorCode::kEnvironment, "memory: ", kTooLittle);
  } catch (const std::filesystem::filesystem_error& error) {
    return complain(
        ErrorCode::kEnvironment, "",
        printable(error.path1().native()) + ": found " + error.code().message() + ", expected a usable path");
  } catch (const std::system_error& error) {  // threads that cannot be created, a failing disk
    return complain(ErrorCode::kEnvironment, "system: ", printable(error.what()));
  } catch (const std::exception& error) {
    if (memory_ran_out) return complain(ErrorCode::kEnvironment, "memory: ", kTooLittle);  // the library's own message
    return complain(ErrorCode::kInternal, kInternal, printable(error.what()));
  } catch (...) {
    return complain(ErrorCode::kInternal, kInternal, "unknown exception");
  }
}

}  // namespace

ExitReport exit_report(const std::exception_ptr& failure) {
  ExitReport words;
  words.status =
      describe(failure, [&](std::string_view kind, std::string_view line) { words.line.append(kind).append(line); });
  return words;
}

int print_exit(std::string_view program, const std::exception_ptr& failure) noexcept {
  return describe(failure, [&](std::string_view kind, std::string_view line) {
    std::cerr << program << ": " << (kind == kInterrupted ? "" : "error: ") << kind << line << std::endl;
  });
}

void install_exit_reports(std::string_view program) noexcept {
  dying_program = program;
  std::set_terminate(on_terminate);
  std::set_new_handler(on_exhausted_memory);
  (void)::on_exit(on_end, nullptr);
}

void end_program(const std::exception_ptr& failure) noexcept { end(print_exit(dying_program, failure)); }

}  // namespace kvs::inline run
