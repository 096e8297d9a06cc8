// SPDX-License-Identifier: Apache-2.0
#include "tasks/haystack.h"

#include <algorithm>
#include <array>

#include "core/utf8.h"

namespace kvs::inline tasks {
namespace {

constexpr std::size_t kLongestWord = 32;  // bytes

/// Returns the length of a sentence end at the start of `text` that needs no space after it. Such an end is a full stop
/// of a script without spaces, and closing quotation marks and brackets; 0: no sentence end.
std::size_t full_stop_length(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 5> kStops{"。", "！", "？", "｡", "．"};
  constexpr std::array<std::string_view, 6> kClosing{"”", "’", "」", "』", "）", "》"};
  const auto begins = [&](std::string_view mark) { return text.starts_with(mark); };
  std::size_t length = 0;
  const auto take = [&](const auto& marks) {
    for (auto found = std::ranges::find_if(marks, begins); found != marks.end();
         found = std::ranges::find_if(marks, begins)) {
      length += found->size();
      text.remove_prefix(found->size());
    }
  };
  take(kStops);
  if (length > 0) take(kClosing);
  return length;
}

/// Returns where the first sentence of `text` ends: after its marks or at the end. `text` must not begin with a space.
std::size_t sentence_length(std::string_view text) noexcept {
  for (std::size_t n = 1; n < text.size(); ++n) {
    if (is_blank(text[n]) && std::string_view(".?!").find(text[n - 1]) != std::string_view::npos) return n;
    const bool may_stop = static_cast<unsigned char>(text[n]) >= 0x80;
    if (const std::size_t stop = may_stop ? full_stop_length(text.substr(n)) : 0; stop > 0) return n + stop;
  }
  return text.size();
}

}  // namespace

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
  std::vector<std::string_view> sentences;
  for (text = stripped(text); !text.empty(); text = stripped(text)) {
    sentences.push_back(text.substr(0, sentence_length(text)));
    text.remove_prefix(sentences.back().size());
  }
  return sentences;
}

std::vector<std::string_view> parts_of(std::string_view text) {
  text = stripped(text);
  std::vector<std::string_view> parts = sentences_of(text);
  if (std::ranges::none_of(parts, [&](std::string_view part) { return 2 * part.size() > text.size(); })) return parts;
  parts.clear();
  UnitReader reader(text);
  for (UnitReader::Unit unit; reader.next(unit);) parts.push_back(text.substr(unit.first, unit.last - unit.first));
  return parts;
}

std::string_view whole_of(std::span<const std::string_view> parts) noexcept {
  if (parts.empty()) return {};
  return {parts.front().data(),
          static_cast<std::size_t>(parts.back().data() - parts.front().data()) + parts.back().size()};
}

std::string joined(std::span<const std::string_view> parts, std::string_view between) {
  std::string text;
  for (std::size_t n = 0; n < parts.size(); ++n) text.append(n == 0 ? "" : between).append(parts[n]);
  return text;
}

std::string joined(std::span<const std::string> parts, std::string_view between) {
  return joined(std::vector<std::string_view>(parts.begin(), parts.end()), between);
}

bool UnitReader::next(Unit& unit) noexcept {
  unit.is_glued = in_run_ && at_ < text_.size() && !is_blank(text_[at_]);
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  if (at_ == text_.size()) return false;
  unit.first = at_;
  if (!unit.is_glued) {
    while (at_ < text_.size() && at_ - unit.first <= kLongestWord && !is_blank(text_[at_])) ++at_;
    in_run_ = at_ - unit.first > kLongestWord;
    if (in_run_) at_ = unit.first;
  }
  if (in_run_) at_ += std::max<std::size_t>(utf8_length(text_.substr(at_)), 1);
  unit.last = at_;
  return true;
}

bool UnitSupply::is_cut() const noexcept {
  constexpr std::size_t kUnits = 1000;
  std::size_t units = 0, characters = 0;
  UnitReader reader(text_);
  for (UnitReader::Unit unit; units < kUnits && reader.next(unit); ++units) characters += unit.is_glued ? 1 : 0;
  return 2 * characters > units;
}

std::string UnitSupply::first(std::size_t count) const {
  std::string taken;
  UnitReader reader(text_);
  for (UnitReader::Unit unit; count > 0; --count) {
    if (!reader.next(unit)) {
      reader = UnitReader(text_);
      (void)reader.next(unit);
    }
    if (!taken.empty() && !unit.is_glued) taken += ' ';
    taken += text_.substr(unit.first, unit.last - unit.first);
  }
  return taken;
}

std::string UnitSupply::first_as_written(std::size_t count) const {
  std::string taken;
  UnitReader reader(text_);
  std::size_t end = 0;
  for (UnitReader::Unit unit; count > 0; --count) {
    if (!reader.next(unit)) {
      taken += text_.substr(end);
      end = 0;
      reader = UnitReader(text_);
      (void)reader.next(unit);
    }
    taken += text_.substr(end, unit.last - end);
    end = unit.last;
  }
  return taken.substr(static_cast<std::size_t>(stripped(taken).data() - taken.data()));
}

}  // namespace kvs::inline tasks
