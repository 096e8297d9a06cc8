#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace kvs {

/// How a program ends after an exception: the one place where errors become lines on stderr and exit statuses
/// (docs/errors.md).  @return the status.
int print_exit(std::string_view program, const std::exception_ptr& failure) noexcept;
/// The same, not said.
struct ExitReport {
  int status = 0;
  std::string line;  // without "PROGRAM: error: "
};
ExitReport exit_report(const std::exception_ptr& failure);

/// Ends the program likewise where main cannot return, and releases locks of outputs.
[[noreturn]] void end_program(const std::exception_ptr& failure) noexcept;
/// Does so for an exception that a thread or a noexcept function lets go, most often for want of memory, and for a
/// library that calls exit(1).
void install_exit_reports(std::string_view program) noexcept;

}  // namespace kvs
