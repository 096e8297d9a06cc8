// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/text_edges.h"

#include <string>

#include "core/utf8.h"
#include "tokenizer/regex.h"

namespace kvs::inline tokenizer {
namespace {

// \w of the `regex` crate, which `tokenizers` uses here.
constexpr std::string_view kWordStart = R"(^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}])";

/// Returns where the last character of `text` begins. `text` must not be empty.
std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80) --at;
  return at;
}

}  // namespace

std::size_t space_at_start(std::string_view text) {
  static const Regex kPattern(R"(^\s+)");
  const auto match = kPattern.search(text, 0);
  return match ? match->end : 0;
}

std::size_t space_at_end(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t at = last_character(text.substr(0, end));
    if (space_at_start(text.substr(at, end - at)) == 0) break;
    end = at;
  }
  return end;
}

bool starts_with_word(std::string_view text) {
  static const Regex kPattern(kWordStart);
  std::string storage;
  return kPattern.search(kPattern.searchable(text.substr(0, utf8_length(text)), storage), 0).has_value();
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && starts_with_word(text.substr(last_character(text)));
}

}  // namespace kvs::inline tokenizer
