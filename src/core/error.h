#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace kvs {

/// What went wrong, and at the same time the program's exit status.
enum class ErrorCode {
  kUsage = 2,        ///< a command line or option value that cannot be used
  kInput = 3,        ///< an input file is missing, unreadable or malformed
  kUnsupported = 4,  ///< valid input that this version does not handle
  kData = 5,         ///< numerically impossible (NaN weights) or too little data
  kEnvironment = 6,  ///< input/output or environment: disk full, no such device, out of memory
  kConflict = 7,     ///< output exists, locked, or a resume or config made for something else
  kInternal = 70,    ///< a bug in this program
};

/// The only exception the libraries throw on purpose. `what()` is one line, "WHERE: PROBLEM".
class Error : public std::runtime_error {
 public:
  /// @param where    the culprit: a file, and after ": " its field, tensor or offset; or an option
  /// @param problem  what was found and what was expected
  /// Control characters and bytes that are not UTF-8 are escaped in both, so that a message is always one clean line.
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

/// `text` with control characters (C0, DEL and C1) and bytes that are not valid UTF-8 written as \xNN, cut at `limit`
/// bytes.
std::string printable(std::string_view text, std::size_t limit = 400);
/// The same of text for a terminal: whole, and line ends and tabs stay.
std::string printable_text(std::string_view text);

}  // namespace kvs
