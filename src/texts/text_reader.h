// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/interrupt.h"
#include "texts/text_source.h"

namespace kvs::inline texts {

/// How a TextReader treats invalid text.
struct TextLeniency {
  bool replace_invalid_utf8 = false;  // replaces it by U+FFFD
  bool skip_bad_lines = false;
};

/// Reads the texts of files, folders, JSON lines and standard input, and counts what it met.
class TextReader {
 public:
  /// Takes a text; messages call it `where`. @return true if more texts are wanted
  using Take = std::function<bool(const std::string& where, const std::string& text)>;

  explicit TextReader(TextLeniency leniency) noexcept : leniency_(leniency) {}

  /// Reads the texts of one argument: a file, a *.jsonl with one object per line, a folder of both, or "-". Opens no
  /// further file once no more texts are wanted.
  /// @throws Error kInput (missing, invalid UTF-8 with line and byte offset, bad line), kUnsupported (io/file_kind.h),
  /// kUsage (FIFO, device, socket).
  void read(const std::string& argument, const Take& take);

  /// Calls take(where, parse(line, where)) for each line that is not blank. `take` returns true if more are wanted.
  template <class Parse, class TakeValue>
  void read_lines(TextSource source, const Parse& parse, const TakeValue& take) {
    for (TextSource::Line line; wants_more_ && source.next(line);) {
      check_interrupt();
      if (is_blank_line(line)) continue;
      const std::string where = source.name() + ": line " + std::to_string(line.number);
      // take() is outside the try block: an error of a tokenizer that does not fit the model is not the line's error.
      if (const auto value = parsed(source, line, where, parse)) wants_more_ = take(where, *value);
    }
    record(source);
  }

  const std::vector<std::string>& sha256() const noexcept { return sha256_; }  // one per file read, in order
  std::size_t replaced_bytes() const noexcept { return replaced_bytes_; }
  std::size_t skipped_lines() const noexcept { return skipped_lines_; }
  /// Files that were read as one text although their first line is a JSON object.
  const std::vector<std::string>& json_like() const noexcept { return json_like_; }

 private:
  static bool is_blank_line(const TextSource::Line& line) noexcept;

  /// Returns nullopt if a bad line is skipped.
  template <class Parse>
  auto parsed(const TextSource& source, const TextSource::Line& line, const std::string& where, const Parse& parse)
      -> std::optional<std::invoke_result_t<Parse, const TextSource::Line&, const std::string&>> {
    try {
      if (line.is_too_long) throw Error(ErrorCode::kInput, source.name(), too_long_problem(line.number));
      return parse(line, where);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInput || !leniency_.skip_bad_lines) throw;
      ++skipped_lines_;
      return std::nullopt;
    }
  }

  void read_file(const std::filesystem::path& path, const Take& take);
  void read_prose(TextSource source, const Take& take);
  void read_json_lines(TextSource source, const Take& take);
  std::string valid_text(std::string bytes, const std::string& name, std::size_t line, std::size_t offset);
  void record(TextSource& source) { sha256_.push_back(source.finish_digest()); }

  TextLeniency leniency_;
  bool wants_more_ = true;
  std::vector<std::string> sha256_, json_like_;
  std::size_t replaced_bytes_ = 0, skipped_lines_ = 0;
};

}  // namespace kvs::inline texts
