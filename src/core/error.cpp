// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <algorithm>

#include "core/utf8.h"

namespace kvs::inline core {

Error::Error(ErrorCode code, std::string_view where, std::string_view problem)
    : std::runtime_error(printable(where) + ": " + printable(problem, 2000)), code_(code) {}

std::string printable(std::string_view text, std::size_t limit) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (out.size() >= limit) return out + "...";
    const std::size_t length = utf8_length(text.substr(at));
    const std::size_t escaped = length == 0 ? 1 : is_control(text.substr(at, length)) ? length : 0;
    for (const char c : text.substr(at, escaped)) {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    if (escaped == 0) out += text.substr(at, length);
    at += std::max(length, escaped);
  }
  return out;
}

std::string printable_text(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = text.find_first_of("\n\t");
    out += printable(text.substr(0, end), std::string_view::npos);
    if (end == std::string_view::npos) return out;
    out += text[end];
    text.remove_prefix(end + 1);
  }
}

}  // namespace kvs::inline core
