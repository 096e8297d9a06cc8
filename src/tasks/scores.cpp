#include "tasks/scores.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "tasks/haystack.h"

namespace kvs {
namespace {

/// How often each word stands in a text: lower case, no punctuation, no articles.
std::map<std::string, std::size_t> word_counts(std::string_view text) {
  std::string plain;
  for (const char c : lower_case(text))
    if (std::ispunct(static_cast<unsigned char>(c)) == 0) plain += c;
  std::map<std::string, std::size_t> counts;
  for (const std::string_view word : words_of(plain))
    if (word != "a" && word != "an" && word != "the") ++counts[std::string(word)];
  return counts;
}

std::size_t total(const std::map<std::string, std::size_t>& counts) {
  std::size_t sum = 0;
  for (const auto& [word, count] : counts) sum += count;
  return sum;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

bool holds_answer(std::string_view text, std::string_view answer) {
  return lower_case(text).find(lower_case(answer)) != std::string::npos;
}

double longest_common_share(std::string_view answer, std::string_view text) {
  if (answer.empty()) return 1;
  std::vector<std::size_t> row(text.size() + 1), last(row);  // [n] of what ends before text[n]
  std::size_t longest = 0;
  for (const char c : answer) {
    std::swap(row, last);
    for (std::size_t n = 0; n < text.size(); ++n) {
      row[n + 1] = c == text[n] ? last[n] + 1 : 0;
      longest = std::max(longest, row[n + 1]);
    }
  }
  return static_cast<double>(longest) / static_cast<double>(answer.size());
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

}  // namespace kvs
