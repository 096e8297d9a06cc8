#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvs {

/// What is said over and over where there is no text: five sentences, a prompt of Mohtashami and Jaggi (2023) that
/// RULER and others took over.
inline constexpr std::string_view kNoise =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

/// ASCII blanks.
bool is_blank(char c) noexcept;
/// Without the blanks at both ends.
std::string_view stripped(std::string_view text) noexcept;
/// Runs of blanks part them.
std::vector<std::string_view> words_of(std::string_view text);
/// Parted by blanks behind . ? or !, and behind the full stops of scripts that are written without blanks. RULER takes
/// NLTK's trained splitter instead.
std::vector<std::string_view> sentences_of(std::string_view text);
/// Between which something may be hidden: sentences; where one of them is more than half of the text, its units.
std::vector<std::string_view> parts_of(std::string_view text);
/// Consecutive parts of one text as they stand in it.
std::string_view whole_of(std::span<const std::string_view> parts) noexcept;
std::string joined(std::span<const std::string_view> parts, std::string_view between);
std::string joined(std::span<const std::string> parts, std::string_view between);

/// Units of a text, one after the other: words, and the characters of a run of more than 32 bytes without a blank, as
/// Chinese, Japanese and Thai are written.
class UnitReader {
 public:
  struct Unit {
    std::size_t first = 0, last = 0;  // bytes [first, last) of the text
    bool is_glued = false;            // no blank before it
  };

  explicit UnitReader(std::string_view text) noexcept : text_(text) {}
  /// False at the end.
  bool next(Unit& unit) noexcept;

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  bool in_run_ = false;
};

/// The first units of a text, which is repeated as need be.
class UnitSupply {
 public:
  explicit UnitSupply(std::string_view text) noexcept : text_(text) {}
  bool empty() const noexcept { return stripped(text_).empty(); }
  /// Whether most of its first thousand units are characters.
  bool is_cut() const noexcept;
  /// One blank between words.
  std::string first(std::size_t count) const;
  /// With the text's own blanks, but none at the start.
  std::string first_as_written(std::size_t count) const;

 private:
  std::string_view text_;
};

}  // namespace kvs
