// SPDX-License-Identifier: Apache-2.0
#include "tasks/scores.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "tasks/characters.h"
#include "tasks/haystack.h"

namespace kvs::inline tasks {
namespace {

using Words = std::map<std::u32string, std::size_t>;

/// re.sub(r"\b(a|an|the)\b", " ", …) of a text in lower case; a word is a maximal run of \w.
void blank_articles(std::u32string& text) {
  for (auto first = text.begin(); first != text.end();) {
    const auto last = std::find_if_not(first, text.end(), is_word_character);
    const std::u32string_view run(first, last);
    if (run == U"a" || run == U"an" || run == U"the") std::fill(first, last, U' ');
    first = std::find_if(last, text.end(), is_word_character);
  }
}

/// Counts the words of a text after SQuAD's normalize_answer.
Words word_counts(std::string_view text) {
  std::u32string plain = lower_case(characters_of(text));
  std::erase_if(plain, [](char32_t c) { return c < 0x80 && std::ispunct(static_cast<int>(c)) != 0; });
  blank_articles(plain);
  Words counts;
  for (auto first = plain.begin(); first != plain.end();) {
    const auto last = std::find_if(first, plain.end(), is_space);
    if (last != first) ++counts[std::u32string(first, last)];
    first = std::find_if_not(last, plain.end(), is_space);
  }
  return counts;
}

std::size_t total(const Words& counts) {
  std::size_t sum = 0;
  for (const auto& [word, count] : counts) sum += count;
  return sum;
}

}  // namespace

bool holds_answer(std::string_view text, std::string_view answer) {
  return lower_case(characters_of(text)).find(lower_case(characters_of(answer))) != std::u32string::npos;
}

double longest_common_share(std::string_view answer, std::string_view text) {
  const std::u32string wanted = lower_case(characters_of(answer)), found = lower_case(characters_of(text));
  if (wanted.empty()) return 1;
  std::vector<std::size_t> row(found.size() + 1), last(row);  // [n] length of the match that ends before found[n]
  std::size_t longest = 0;
  for (const char32_t c : wanted) {
    std::swap(row, last);
    for (std::size_t n = 0; n < found.size(); ++n) {
      row[n + 1] = c == found[n] ? last[n] + 1 : 0;
      longest = std::max(longest, row[n + 1]);
    }
  }
  return static_cast<double>(longest) / static_cast<double>(wanted.size());
}

double word_f1(std::string_view answer, std::string_view text) {
  const auto wanted = word_counts(answer), found = word_counts(text);
  const std::size_t all = total(wanted) + total(found);
  if (all == 0) return 1;
  std::size_t common = 0;
  for (const auto& [word, count] : wanted)
    if (const auto other = found.find(word); other != found.end()) common += std::min(count, other->second);
  return 2 * static_cast<double>(common) / static_cast<double>(all);
}

Scores score_text(std::string_view text, std::span<const std::string> answers, AnswerRule rule) {
  const std::string_view content = stripped(text), first_line = content.substr(0, content.find('\n'));
  Scores sum, best;
  for (const std::string& answer : answers) {
    const double found = holds_answer(text, answer) ? 1 : 0, partial = longest_common_share(answer, text);
    sum.recall += found;
    sum.partial += partial;
    best.recall = std::max(best.recall, found);
    best.partial = std::max(best.partial, partial);
    best.f1 = std::max(best.f1, word_f1(answer, first_line));
  }
  if (rule == AnswerRule::kAll) {
    const auto count = static_cast<double>(answers.size());
    best.recall = sum.recall / count;
    best.partial = sum.partial / count;
  }
  best.accuracy = best.recall == 1 ? 1 : 0;
  return best;
}

}  // namespace kvs::inline tasks
