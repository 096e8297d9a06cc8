#include "core/error.h"

#include "core/utf8.h"

namespace kvs {

Error::Error(ErrorCode code, std::string_view where, std::string_view problem)
    : std::runtime_error(printable(where) + ": " + printable(problem, 2000)), code_(code) {}

std::string printable(std::string_view text, std::size_t limit) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (out.size() >= limit) return out + "...";
    const std::size_t length = utf8_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      ++at;
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  return out;
}

}  // namespace kvs
