// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/descriptor.h"
#include "io/digest.h"

namespace kvs::inline texts {

/// Reads one regular file or standard input, line by line or as a whole, and digests what it reads. Memory: one line or
/// the whole file, and one block.
class TextSource {
 public:
  /// Longer lines are not kept in memory.
  static constexpr std::size_t kLineLimit = 64UL << 20;

  struct Line {
    std::string_view bytes;    // without its '\n'; valid until the next call; empty if too long
    std::size_t number = 0;    // from 1
    std::size_t offset = 0;    // of its first byte in the file
    bool has_newline = false;  // false only for a last line that was cut or never ended
    bool is_too_long = false;
  };

  /// @throws Error kInput if missing or unreadable; kUsage for a FIFO, device, socket or folder, without waiting for it
  static TextSource open(const std::filesystem::path& path);
  static TextSource standard_input();

  const std::string& name() const noexcept { return name_; }
  /// Returns up to `count` bytes from the start without consuming them (fewer in a shorter file). Call before next().
  std::string_view peek(std::size_t count);
  /// Returns false at the end. @throws Error kInput, kEnvironment if reading fails.
  bool next(Line& line);
  /// Returns the remaining bytes, with lines of any length. @throws Error kInput, kEnvironment if reading fails.
  std::string read_rest();
  /// Returns the SHA-256 of the whole file; for standard input, of the lines read. Call once, as the last call.
  std::string finish_digest();

 private:
  TextSource(Descriptor file, std::string name, bool is_stream);
  bool fill();
  void skip_to_newline(Line& line);

  Descriptor file_;
  std::string name_;
  bool is_stream_;
  bool at_end_ = false;
  std::string buffer_;
  std::size_t begin_ = 0;  // start of the bytes not yet returned
  std::size_t lines_ = 0, offset_ = 0;
  Sha256 digest_;
};

/// Returns "line N: longer than the limit ...": the message for lines above TextSource::kLineLimit.
std::string too_long_problem(std::size_t line);

/// Converts `bytes` to valid UTF-8: each ill-formed sequence (maximal subpart, Unicode 15 section 3.9, U+FFFD
/// substitution) becomes U+FFFD. Adds the number of bytes replaced to `replaced`.
std::string replace_invalid_utf8(std::string_view bytes, std::size_t& replaced);

}  // namespace kvs::inline texts
