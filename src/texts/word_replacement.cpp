// SPDX-License-Identifier: Apache-2.0
#include "texts/word_replacement.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace kvs::inline texts {
namespace {

/// English function words: articles, pronouns, prepositions, conjunctions, auxiliaries, and the most common adverbs.
constexpr std::string_view kStopWords =
    " a about above across after again against all almost along already also although always am among an and "
    "another any are around as at away be because been before behind being below beside between beyond both but "
    "by can cannot could did do does done down during each either else ever every few for from further had has "
    "have having he hence her here hers him his how however i if in into is it its itself just least less like "
    "many may me might mine more most much must my near neither never no nor not now of off often on once one "
    "only onto or other others ought our ours out over own per quite rather same shall she should since so some "
    "still such than that the their theirs them then thence there these they this those though through thus till "
    "to together too toward towards under unless until unto up upon us very was we well were what when whence "
    "where whether which while who whole whom whose why will with within without would yet you your yours ";

bool is_stop_word(std::string_view word) {
  return kStopWords.find(" " + std::string(word) + " ") != std::string_view::npos;
}

struct Word {
  std::size_t begin, end;
  bool replaceable;
};

bool is_small(char c) { return c >= 'a' && c <= 'z'; }
/// Bytes beyond ASCII count as letters, so a word with such bytes is one word. It is not replaced.
bool is_letter(char c) { return is_small(c) || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0; }
bool joins(char c) { return c == '\'' || c == '_' || (c >= '0' && c <= '9'); }

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_letter(text[at])) continue;
    const std::size_t begin = at;
    while (at < text.size() && is_letter(text[at])) ++at;
    const std::string_view word = text.substr(begin, at - begin);
    const bool alone = begin > 0 && !joins(text[begin - 1]) && at < text.size() && !joins(text[at]);
    words.push_back({begin, at, alone && std::ranges::all_of(word, is_small) && !is_stop_word(word)});
  }
  return words;
}

}  // namespace

std::vector<WordReplacement> choose_replacements(std::string_view text, double share, std::uint64_t seed,
                                                 const Synonyms& synonyms) {
  std::vector<Word> words = words_of(text);
  const auto wanted = std::max(1L, std::lround(share * static_cast<double>(words.size())));
  std::mt19937_64 random(seed);  // std::shuffle differs between platforms
  for (std::size_t left = words.size(); left > 1; --left) std::swap(words[left - 1], words[random() % left]);
  std::vector<WordReplacement> chosen;
  for (const Word& word : words) {
    if (static_cast<long>(chosen.size()) == wanted) break;
    if (!word.replaceable) continue;
    std::vector<std::string> others = synonyms(text.substr(word.begin, word.end - word.begin));
    if (!others.empty()) chosen.push_back({word.begin, word.end, std::move(others[random() % others.size()])});
  }
  std::ranges::sort(chosen, {}, &WordReplacement::begin);
  return chosen;
}

std::string replace_words(std::string_view text, std::span<const WordReplacement> replacements) {
  std::string result;
  std::size_t at = 0;
  for (const WordReplacement& replacement : replacements) {
    result.append(text.substr(at, replacement.begin - at)).append(replacement.word);
    at = replacement.end;
  }
  return result.append(text.substr(at));
}

}  // namespace kvs::inline texts
