#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvs {

/// Another word in the place of bytes [begin, end) of a text.
struct WordReplacement {
  std::size_t begin, end;
  std::string word;
};

/// Words for a word; none if it has no synonym.
using Synonyms = std::function<std::vector<std::string>(std::string_view word)>;

/// Chooses round(share · words) words of `text`, at least one, and a synonym for each; fewer where fewer have one. A
/// word is a run of letters. Left alone: stop words, whatever has a capital (proper nouns, and with them the first
/// words of sentences), a letter beyond a–z, or a digit, apostrophe or underscore beside it, and a word at an end of
/// the text, which may be cut off.
/// @return ascending, in bytes of `text`; the same for the same seed everywhere
std::vector<WordReplacement> choose_replacements(std::string_view text, double share, std::uint64_t seed,
                                                 const Synonyms& synonyms);

/// `text` with the replacements made.
std::string replace_words(std::string_view text, std::span<const WordReplacement> replacements);

}  // namespace kvs
