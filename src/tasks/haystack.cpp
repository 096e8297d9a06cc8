#include "tasks/haystack.h"

namespace kvs {

bool is_blank(char c) noexcept { return std::string_view(" \t\n\r\v\f").find(c) != std::string_view::npos; }

std::string_view stripped(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t n = 0; n < text.size();) {
    const std::size_t first = n;
    while (n < text.size() && !is_blank(text[n])) ++n;
    if (n > first) words.push_back(text.substr(first, n - first));
    while (n < text.size() && is_blank(text[n])) ++n;
  }
  return words;
}

std::vector<std::string_view> sentences_of(std::string_view text) {
  text = stripped(text);
  std::vector<std::string_view> sentences;
  std::size_t first = 0;
  for (std::size_t n = 1; n < text.size(); ++n) {
    if (!is_blank(text[n]) || std::string_view(".?!").find(text[n - 1]) == std::string_view::npos) continue;
    sentences.push_back(text.substr(first, n - first));
    while (is_blank(text[n])) ++n;  // ends: the text does not
    first = n;
  }
  if (first < text.size()) sentences.push_back(text.substr(first));
  return sentences;
}

std::string joined(std::span<const std::string_view> parts, std::string_view between) {
  std::string text;
  for (std::size_t n = 0; n < parts.size(); ++n) text.append(n == 0 ? "" : between).append(parts[n]);
  return text;
}

std::string joined(std::span<const std::string> parts, std::string_view between) {
  return joined(std::vector<std::string_view>(parts.begin(), parts.end()), between);
}

std::string WordSupply::first(std::size_t count) const {
  std::vector<std::string_view> taken;
  for (std::size_t n = 0; n < count; ++n) taken.push_back(words_[n % words_.size()]);
  return joined(taken, " ");
}

}  // namespace kvs
