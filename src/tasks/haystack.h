#pragma once

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
/// Parted by blanks behind . ? or !. RULER takes NLTK's trained splitter instead.
std::vector<std::string_view> sentences_of(std::string_view text);
std::string joined(std::span<const std::string_view> parts, std::string_view between);
std::string joined(std::span<const std::string> parts, std::string_view between);

/// Words of a text, over and over.
class WordSupply {
 public:
  explicit WordSupply(std::string_view text) : words_(words_of(text)) {}
  bool empty() const noexcept { return words_.empty(); }
  /// The first `count` of them, between blanks.
  std::string first(std::size_t count) const;

 private:
  std::vector<std::string_view> words_;
};

}  // namespace kvs
