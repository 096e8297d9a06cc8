// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace kvs::inline core {

/// Returns the length in bytes (1 to 4) of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none
/// (empty, a stray continuation, an overlong form, a surrogate, above U+10FFFF, cut off). Unicode 15, table 3-7.
std::size_t utf8_length(std::string_view text) noexcept;

/// Returns true if `character` is exactly one control character: C0, DEL, C1, line separators, bidirectional controls.
bool is_control(std::string_view character) noexcept;

/// Returns the byte offset of the first byte that is not part of well-formed UTF-8, or npos if all of `text` is valid.
std::size_t find_invalid_utf8(std::string_view text) noexcept;

}  // namespace kvs::inline core
