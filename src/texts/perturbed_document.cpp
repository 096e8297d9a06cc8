// SPDX-License-Identifier: Apache-2.0
#include "texts/perturbed_document.h"

#include <algorithm>
#include <string>

#include "core/utf8.h"

namespace kvs::inline texts {
namespace {

/// Returns the text of a window, without characters that the ends of the window cut.
std::string text_of(const Tokenizer& tokenizer, std::span<const std::int32_t> window) {
  std::string text = tokenizer.decode({window.begin(), window.end()});
  text.erase(0, static_cast<std::size_t>(std::ranges::find_if(text, [](char c) { return (c & 0xC0) != 0x80; }) -
                                         text.begin()));
  return text.substr(0, find_invalid_utf8(text));
}

}  // namespace

DocumentVersions perturb_document(const Tokenizer& tokenizer, std::span<const std::int32_t> window,
                                  std::size_t document, const PerturbationPlan& plan, const Synonyms& synonyms) {
  const std::size_t special = plan.bos >= 0 ? 1 : 0;
  const std::string text = text_of(tokenizer, window.subspan(special));
  const auto replacements = choose_replacements(text, plan.share, plan.seed + document, synonyms);
  const std::string changed = replace_words(text, replacements);
  const auto cut = [&](const std::string& version) {
    std::vector<std::int32_t> tokens = tokenizer.encode(version);
    begin_with(plan.bos, tokens);
    tokens.resize(std::min(tokens.size(), plan.tokens));
    return tokens;
  };
  DocumentVersions versions{cut(text), cut(changed)};
  const auto count = [&](const std::string& version, std::size_t bytes) {
    return special + tokenizer.encode(std::string_view(version).substr(0, bytes)).size();
  };
  std::size_t shift = 0;  // bytes that the replacements before this one add, modulo 2^64
  for (const WordReplacement& replacement : replacements) {
    if (count(text, replacement.begin) >= plan.tokens) break;
    ++versions.replaced;
    shift += replacement.word.size() - (replacement.end - replacement.begin);
    if (count(text, replacement.end) != count(changed, replacement.end + shift)) versions.same_count = false;
  }
  return versions;
}

}  // namespace kvs::inline texts
