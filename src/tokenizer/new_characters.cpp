// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/new_characters.h"

#include <algorithm>
#include <array>

#include "tokenizer/new_characters_table.h"

namespace kvs::inline tokenizer {
namespace {

constexpr unsigned kLeadOfThree = 0xE0, kLeadOfFour = 0xF0;
constexpr char32_t kPrivateOfThree = 0xE000, kPrivateOfFour = 0xF0000;

/// Returns the number of bytes of the character with first byte `lead`, in valid UTF-8.
std::size_t length_of(unsigned lead) noexcept {
  return lead < 0x80 ? 1 : lead < kLeadOfThree ? 2 : lead < kLeadOfFour ? 3 : 4;
}

/// Decodes the character at the start of valid UTF-8.
char32_t decode(std::string_view text) noexcept {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const std::size_t length = length_of(byte(0));
  if (length == 1) return byte(0);
  char32_t code = byte(0) & (0x7FU >> length);
  for (std::size_t at = 1; at < length; ++at) code = (code << 6) | (byte(at) & 0x3FU);
  return code;
}

/// Overwrites the character of three or four bytes at `at`.
void overwrite(std::string& text, std::size_t at, std::size_t length, char32_t code) {
  for (std::size_t byte = length; byte-- > 1; code >>= 6) text[at + byte] = static_cast<char>(0x80U | (code & 0x3FU));
  text[at] = static_cast<char>((length == 3 ? kLeadOfThree : kLeadOfFour) | code);
}

template <class Range, std::size_t Size>
const Range* find_range(const std::array<Range, Size>& table, char32_t code) noexcept {
  const auto after = std::upper_bound(table.begin(), table.end(), code,
                                      [](char32_t wanted, const Range& range) { return wanted < range.first; });
  if (after == table.begin() || code > (after - 1)->last) return nullptr;
  return &*(after - 1);
}

/// Upper-case letters from `first` to `last`; the lower case is at code point + `distance`.
struct CasePairs {
  char32_t first, last;
  std::int32_t distance;
};
// Source: UnicodeData.txt of Unicode 17.0; utf8proc 2.8 has 15.0.
constexpr std::array<CasePairs, 10> kNewCases{{{0x1C89, 0x1C89, 1},
                                               {0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
                                               {0xA7CC, 0xA7CC, 1},
                                               {0xA7CE, 0xA7CE, 1},
                                               {0xA7D2, 0xA7D2, 1},
                                               {0xA7D4, 0xA7D4, 1},
                                               {0xA7DA, 0xA7DA, 1},
                                               {0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
                                               {0x10D50, 0x10D65, 0x20},
                                               {0x16EA0, 0x16EB8, 0x1B}}};

}  // namespace

std::string_view with_stand_ins(std::string_view text, Unicode version, std::string& storage) {
  bool copied = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = length_of(lead);
    if (length >= 3) {
      const NewCharacters* range = find_range(kNewCharacters, decode(text.substr(at)));
      if (range != nullptr) {
        if (!copied) storage = text;
        copied = true;
        const bool known = range->version <= static_cast<std::uint8_t>(version);
        overwrite(storage, at, length, known ? range->stand_in : length == 3 ? kPrivateOfThree : kPrivateOfFour);
      }
    }
    at += length;
  }
  return copied ? std::string_view(storage) : text;
}

char32_t new_lower_case(char32_t character) noexcept {
  const CasePairs* pairs = find_range(kNewCases, character);
  return pairs == nullptr ? 0 : static_cast<char32_t>(static_cast<std::int32_t>(character) + pairs->distance);
}

std::size_t length_before_inert(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size() && find_range(kInertCharacters, decode(text.substr(at))) == nullptr) {
    at += length_of(static_cast<unsigned char>(text[at]));
  }
  return at;
}

}  // namespace kvs::inline tokenizer
