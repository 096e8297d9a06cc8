// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace kvs::inline core {

/// The kind of an error. Its value is also the exit status of the program.
enum class ErrorCode {
  kUsage = 2,        ///< an unusable command line or option value
  kInput = 3,        ///< an input file is missing, unreadable or malformed
  kUnsupported = 4,  ///< valid input that this version does not handle
  kData = 5,         ///< numerically impossible data (NaN weights) or too little data
  kEnvironment = 6,  ///< I/O or environment: disk full, no such device, out of memory
  kConflict = 7,     ///< output exists or is locked; resume state or config was made for something else
  kInternal = 70,    ///< a bug in this program
};

/// The only exception that the libraries throw on purpose. `what()` is one line: "WHERE: PROBLEM".
class Error : public std::runtime_error {
 public:
  /// @param where    the source of the error: a file, then ": " and its field, tensor or offset; or an option
  /// @param problem  what was found and what was expected
  /// Escapes control characters and invalid UTF-8 bytes in both, so that a message is always one clean line.
  Error(ErrorCode code, std::string_view where, std::string_view problem);

  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// Thrown at the next safe point after a signal asked the program to stop (core/interrupt.h).
class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}
  int signal() const noexcept { return signal_; }
  const char* what() const noexcept override { return "interrupted"; }

 private:
  int signal_;
};

/// Returns `text`, cut at `limit` bytes, with control characters (C0, DEL and C1) and invalid UTF-8 written as \xNN.
std::string printable(std::string_view text, std::size_t limit = 400);
/// Like printable(), but for terminal text: keeps line ends and tabs, and does not cut.
std::string printable_text(std::string_view text);

}  // namespace kvs::inline core
