// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace kvs::inline run {

// Only this file turns errors into lines on stderr and exit statuses (docs/errors.md).

/// Prints the line of an exception that ends the program. @return the exit status
int print_exit(std::string_view program, const std::exception_ptr& failure) noexcept;
struct ExitReport {
  int status = 0;
  std::string line;  // without "PROGRAM: error: "
};
/// Like print_exit(), but returns the line instead of printing it.
ExitReport exit_report(const std::exception_ptr& failure);

/// Prints the line, releases the locks of outputs and ends the program. For code that cannot return to main.
[[noreturn]] void end_program(const std::exception_ptr& failure) noexcept;
/// Arranges for end_program() to be called when an exception leaves a thread or a noexcept function (mostly out of
/// memory), or when a library calls exit(1).
void install_exit_reports(std::string_view program) noexcept;

}  // namespace kvs::inline run
