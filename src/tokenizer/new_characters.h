// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvs::inline tokenizer {

/// Characters from `first` to `last`, which Unicode `version` added (15 includes 15.1). `stand_in` is a character of
/// Unicode 14 with the same general category and UTF-8 length.
struct NewCharacters {
  char32_t first, last, stand_in;
  std::uint8_t version;
};

struct CharacterRange {
  char32_t first, last;
};

/// Unicode versions of the programs whose ids must be matched: 15 of llama.cpp, 16 of Oniguruma (which `tokenizers`
/// splits with), 17 of Rust (its Digits and Lowercase).
enum class Unicode : std::uint8_t { k15 = 15, k16 = 16, k17 = 17 };

/// Returns `text` with each character that Unicode 14 does not have replaced by a stand-in. Patterns with general
/// categories then match as in Unicode `version`. Characters newer than `version` become private-use characters, which
/// are in no such category. Byte offsets do not change. @return `text` itself, or `storage`
std::string_view with_stand_ins(std::string_view text, Unicode version, std::string& storage);

/// Returns the lower case of an upper-case letter that got it in Unicode 16 or 17; 0 for any other character.
char32_t new_lower_case(char32_t character) noexcept;

/// Returns the length in bytes of the start of `text` without characters that today's Unicode reorders, decomposes or
/// composes and that the normalisers of `tokenizers` (tables of Unicode 9) do not.
std::size_t length_before_inert(std::string_view text) noexcept;

}  // namespace kvs::inline tokenizer
