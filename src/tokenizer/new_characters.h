#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvs {

/// Characters from `first` to `last`, which Unicode `version` (15 means up to 15.1) added; `stand_in` is one of Unicode
/// 14 with their general category and length in UTF-8.
struct NewCharacters {
  char32_t first, last, stand_in;
  std::uint8_t version;
};

struct CharacterRange {
  char32_t first, last;
};

/// The tables of the programs whose ids are to be met: llama.cpp's; Oniguruma's, which `tokenizers` splits by; those of
/// Rust, which its Digits and Lowercase go by.
enum class Unicode : std::uint8_t { k15 = 15, k16 = 16, k17 = 17 };

/// `text` with a stand-in for each character that a library of Unicode 14 knows nothing of, so that patterns that ask
/// for general categories match as in Unicode `version`; later characters become private ones, which are in no such
/// category. Offsets stay. @return `text` itself, or `storage`
std::string_view with_stand_ins(std::string_view text, Unicode version, std::string& storage);

/// The lower case of an upper-case letter that Unicode 16 or 17 added or gave one; 0 for any other character.
char32_t new_lower_case(char32_t character) noexcept;

/// Length in bytes of the stretch at the start of `text` without characters that Unicode reorders, takes apart or
/// composes and the normalisers of `tokenizers`, whose tables are of Unicode 9, do not.
std::size_t length_before_inert(std::string_view text) noexcept;

}  // namespace kvs
