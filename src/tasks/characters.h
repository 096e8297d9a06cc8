// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kvs::inline tasks {

/// Returns the code points of a text. Invalid UTF-8 becomes U+FFFD.
std::u32string characters_of(std::string_view text);

/// Python's str.lower(): the full mapping of each character, and ς for a Σ at the end of a word.
std::u32string lower_case(std::u32string_view text);

/// Python's str.isspace() of one character.
bool is_space(char32_t character) noexcept;

/// \w of Python's re: letters, numbers and the underscore.
bool is_word_character(char32_t character) noexcept;

}  // namespace kvs::inline tasks
