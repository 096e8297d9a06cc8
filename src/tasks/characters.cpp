// SPDX-License-Identifier: Apache-2.0
#include "tasks/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "core/utf8.h"
#include "texts/text_source.h"
#include "tokenizer/new_characters.h"

namespace kvs::inline tasks {
namespace {

struct Stretch {
  char32_t first, last;
};

template <std::size_t Size>
bool is_in(const std::array<Stretch, Size>& stretches, char32_t character) noexcept {
  return std::ranges::any_of(stretches,
                             [&](const Stretch& one) { return character >= one.first && character <= one.last; });
}

utf8proc_category_t category_of(char32_t character) noexcept {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

/// Property Cased, for characters that are not Case_Ignorable.
bool is_cased(char32_t character) noexcept {
  // Other_Lowercase and Other_Uppercase: ordinals, Roman numerals, letters in circles and squares.
  constexpr std::array<Stretch, 7> kOthers{{{0xAA, 0xAA},
                                            {0xBA, 0xBA},
                                            {0x2160, 0x217F},
                                            {0x24B6, 0x24E9},
                                            {0x1F130, 0x1F149},
                                            {0x1F150, 0x1F169},
                                            {0x1F170, 0x1F189}}};
  const utf8proc_category_t category = category_of(character);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT ||
         is_in(kOthers, character);
}

/// Property Case_Ignorable.
bool is_case_ignorable(char32_t character) noexcept {
  constexpr std::u32string_view kMarksInWords =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  switch (category_of(character)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return kMarksInWords.find(character) != std::u32string_view::npos;
  }
}

/// Returns true if the sigma at `at` ends a word: a cased character precedes and none follows, ignorable ones aside.
bool is_final_sigma(std::u32string_view text, std::size_t at) noexcept {
  std::size_t before = at, behind = at + 1;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  while (behind < text.size() && is_case_ignorable(text[behind])) ++behind;
  return behind == text.size() || !is_cased(text[behind]);
}

char32_t simple_lower_case(char32_t character) noexcept {
  const char32_t added = new_lower_case(character);
  return added != 0 ? added : static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character)));
}

}  // namespace

std::u32string characters_of(std::string_view text) {
  std::size_t replaced = 0;
  const std::string valid = replace_invalid_utf8(text, replaced);
  std::u32string characters;
  for (std::string_view rest = valid; !rest.empty();) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(rest.data()),
                                                     static_cast<utf8proc_ssize_t>(rest.size()), &character);
    characters += static_cast<char32_t>(character);
    rest.remove_prefix(static_cast<std::size_t>(length));
  }
  return characters;
}

std::u32string lower_case(std::u32string_view text) {
  constexpr char32_t kDottedCapitalI = 0x130;  // the only character whose lower case has two characters
  constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
  std::u32string lower;
  for (std::size_t n = 0; n < text.size(); ++n) {
    if (text[n] == kDottedCapitalI)
      lower += U"i\u0307";
    else if (text[n] == kSigma && is_final_sigma(text, n))
      lower += kFinalSigma;
    else
      lower += simple_lower_case(text[n]);
  }
  return lower;
}

bool is_space(char32_t character) noexcept {
  constexpr std::array<Stretch, 3> kControls{{{0x09, 0x0D}, {0x1C, 0x1F}, {0x85, 0x85}}};
  switch (category_of(character)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return is_in(kControls, character);
  }
}

bool is_word_character(char32_t character) noexcept {
  const utf8proc_category_t category = category_of(character);
  return character == U'_' || (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

}  // namespace kvs::inline tasks
