// SPDX-License-Identifier: Apache-2.0
#include "draw/text_width.h"

#include <array>
#include <cstdint>

namespace kvs::draw {
namespace {

/// Advance widths of U+0020 … U+007E in DejaVu Sans 2.37, in hundredths of the font size.
constexpr std::array<std::uint8_t, 95> kAdvances{
    32, 40, 46, 84, 64, 95, 78, 27, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79,
    60, 79, 69, 63, 61, 73, 68, 99, 69,  61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63,
    63, 28, 28, 58, 28, 97, 63, 61, 63,  63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84};
constexpr double kOther = 0.7;  // for characters outside the table
constexpr double kBold = 1.12;

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

double text_width(std::string_view words, double size, bool bold) {
  double width = 0;
  for (const char c : words) {
    if (continues(c)) continue;
    const auto code = static_cast<unsigned char>(c);
    width += code >= ' ' && code <= '~' ? 0.01 * kAdvances[code - ' '] : kOther;
  }
  return width * size * (bold ? kBold : 1);
}

std::string shortened(const std::string& words, double width, double size) {
  if (text_width(words, size) <= width) return words;
  double room = width - kOther * size;
  std::size_t end = 0;
  for (std::size_t next = 0; next < words.size(); end = next) {
    for (++next; next < words.size() && continues(words[next]);) ++next;
    room -= text_width(std::string_view(words).substr(end, next - end), size);
    if (room < 0) break;
  }
  return words.substr(0, end) + "\u2026";
}

std::vector<std::string> wrapped(std::string_view words, double width, double size) {
  std::vector<std::string> lines(1);
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' ', 1), words.size());
    const std::string word(words.substr(0, end));
    if (!lines.back().empty() && text_width(lines.back() + word, size) > width)
      lines.emplace_back(
          word.substr(word.find_first_not_of(' ') == std::string::npos ? 0 : word.find_first_not_of(' ')));
    else
      lines.back() += word;
    words.remove_prefix(end);
  }
  for (std::string& line : lines) line = shortened(line, width, size);
  return lines;
}

}  // namespace kvs::draw
