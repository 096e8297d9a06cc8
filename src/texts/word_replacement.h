// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvs::inline texts {

/// A word that replaces bytes [begin, end) of a text.
struct WordReplacement {
  std::size_t begin, end;
  std::string word;
};

/// Returns the synonyms of a word; empty if it has none.
using Synonyms = std::function<std::vector<std::string>(std::string_view word)>;

/// Chooses round(share · words) words of `text`, at least one, and a synonym for each; fewer if fewer words have one. A
/// word is a run of letters. Not replaced: stop words; words with a capital (proper nouns and first words of
/// sentences), a letter beyond a–z, or an adjacent digit, apostrophe or underscore. Words at an end of the text stay
/// too, because they may be cut.
/// @return ascending, in bytes of `text`; a seed gives the same result on every platform
std::vector<WordReplacement> choose_replacements(std::string_view text, double share, std::uint64_t seed,
                                                 const Synonyms& synonyms);

/// Returns `text` with the replacements made.
std::string replace_words(std::string_view text, std::span<const WordReplacement> replacements);

}  // namespace kvs::inline texts
