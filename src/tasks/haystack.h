// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvs::inline tasks {

/// The text that is repeated if there is no haystack: five sentences, from a prompt of Mohtashami and Jaggi (2023) that
/// RULER and others adopted.
inline constexpr std::string_view kNoise =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

/// Returns true for ASCII white space.
bool is_blank(char c) noexcept;
/// Returns `text` without white space at both ends.
std::string_view stripped(std::string_view text) noexcept;
/// Splits at runs of white space.
std::vector<std::string_view> words_of(std::string_view text);
/// Splits at white space after . ? or !, and after the full stops of scripts that are written without spaces. RULER
/// uses NLTK's trained splitter instead.
std::vector<std::string_view> sentences_of(std::string_view text);
/// Returns the parts between which something may be hidden: sentences; if one is more than half of the text, units.
std::vector<std::string_view> parts_of(std::string_view text);
/// Returns consecutive parts of one text as they occur in it.
std::string_view whole_of(std::span<const std::string_view> parts) noexcept;
std::string joined(std::span<const std::string_view> parts, std::string_view between);
std::string joined(std::span<const std::string> parts, std::string_view between);

/// Iterates over the units of a text: words; in a run of more than 32 bytes without a space (as Chinese, Japanese and
/// Thai are written), characters.
class UnitReader {
 public:
  struct Unit {
    std::size_t first = 0, last = 0;  // bytes [first, last) of the text
    bool is_glued = false;            // no space before it
  };

  explicit UnitReader(std::string_view text) noexcept : text_(text) {}
  /// Returns false at the end.
  bool next(Unit& unit) noexcept;

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  bool in_run_ = false;
};

/// The first units of a text, which is repeated if necessary.
class UnitSupply {
 public:
  explicit UnitSupply(std::string_view text) noexcept : text_(text) {}
  bool empty() const noexcept { return stripped(text_).empty(); }
  /// Returns true if most of its first thousand units are characters.
  bool is_cut() const noexcept;
  /// Returns the first units with one space between words.
  std::string first(std::size_t count) const;
  /// Returns the first units with the text's own spaces, without spaces at the start.
  std::string first_as_written(std::size_t count) const;

 private:
  std::string_view text_;
};

}  // namespace kvs::inline tasks
