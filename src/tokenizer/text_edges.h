// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace kvs::inline tokenizer {

// Functions take valid UTF-8. White space is Unicode's White_Space; a word character is \w of Unicode TR 18, annex C.

/// Returns the number of bytes of white space at the start.
std::size_t space_at_start(std::string_view text);
/// Returns where the white space at the end of `text` begins. Cost is linear in that white space, not in the text.
std::size_t space_at_end(std::string_view text);
bool starts_with_word(std::string_view text);
bool ends_with_word(std::string_view text);

}  // namespace kvs::inline tokenizer
