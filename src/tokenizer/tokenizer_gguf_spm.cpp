// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <variant>

#include "core/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/gguf_vocabulary.h"

namespace kvs::inline tokenizer {
namespace {

/// Longer than any token in use; finding the merges of a token takes quadratic time in its length.
constexpr std::size_t kLongestToken = 512;

/// Returns ranks: the highest score has rank 0, equal scores have equal ranks.
std::vector<std::uint32_t> ranks_of(const std::vector<float>& scores) {
  std::vector<float> sorted(scores);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<std::uint32_t> ranks;
  for (const float score : scores) {
    const auto place = std::lower_bound(sorted.begin(), sorted.end(), score, std::greater<>());
    ranks.push_back(static_cast<std::uint32_t>(place - sorted.begin()));
  }
  return ranks;
}

std::size_t character_length(std::string_view text) { return std::max<std::size_t>(utf8_length(text), 1); }

/// Returns the symbol of one side of a merge: a token, or a single character, which need not be a token. kNone: the
/// side never arises.
std::uint32_t side_of_merge(Bpe& bpe, std::string_view text) {
  return character_length(text) == text.size() ? bpe.find_or_make(text) : bpe.find(text);
}

/// Adds a merge for any two symbols whose concatenated texts are a token. Control tokens are cut out of a text before
/// merging; in what users wrote they are plain text.
void add_merges(Bpe& bpe, const GgufVocabulary& vocabulary, const std::vector<std::uint32_t>& ranks) {
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
    if (vocabulary.is_special[id] && !vocabulary.is_shown[id]) continue;
    const std::string_view text = vocabulary.texts[id];
    for (std::size_t cut = character_length(text); cut < text.size(); cut += character_length(text.substr(cut))) {
      const std::uint32_t left = side_of_merge(bpe, text.substr(0, cut));
      if (left == Bpe::kNone) continue;
      const std::uint32_t right = side_of_merge(bpe, text.substr(cut));
      if (right != Bpe::kNone) bpe.add_merge(left, right, ranks[id], static_cast<std::uint32_t>(id));
    }
  }
}

/// Returns the token of each byte, by name ("<0x0A>") or otherwise by the byte itself.
Bpe::ByteSymbols byte_tokens(const GgufVocabulary& vocabulary) {
  Bpe::ByteSymbols ids;
  for (std::size_t byte = 0; byte < ids.size(); ++byte) {
    const std::string name = name_of_byte_token(static_cast<unsigned char>(byte));
    std::int32_t id = vocabulary.tokens.find(name);
    if (id < 0) id = vocabulary.tokens.find(std::string(1, static_cast<char>(byte)));
    if (id < 0)
      vocabulary.fail(ErrorCode::kUnsupported, kGgufTokens,
                      "found no token " + name + ", supported: vocabularies with a token for every byte");
    ids[byte] = static_cast<std::uint32_t>(id);
  }
  return ids;
}

std::unique_ptr<Bpe> make_model(GgufVocabulary& vocabulary) {
  auto bpe = std::make_unique<Bpe>(vocabulary.texts.size(), BpeOptions{.unit = BpeOptions::Unit::kCharacter});
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
    const std::string& text = vocabulary.texts[id];
    if (text.size() > kLongestToken) {
      vocabulary.fail(ErrorCode::kUnsupported, kGgufTokens,
                      vocabulary.describe(id) + " has " + std::to_string(text.size()) + " bytes, expected at most " +
                          std::to_string(kLongestToken));
    }
    if (!vocabulary.is_special[id]) vocabulary.tokens.bytes[id] = bytes_of_marked_token(text);
    bpe->add_token(text, static_cast<std::uint32_t>(id));
  }
  add_merges(*bpe, vocabulary, ranks_of(read_gguf_scores(vocabulary)));
  // Byte tokens are substituted only after merging, because a merge must not match the text of their names.
  const Bpe::ByteSymbols hidden = bpe->make_hidden_bytes();
  Bpe::ByteFallback fallback;
  std::ranges::transform(hidden, fallback.begin(), [](std::uint32_t symbol) { return std::vector{symbol}; });
  bpe->set_byte_fallback(std::move(fallback));
  bpe->set_leftovers(byte_tokens(vocabulary));
  return bpe;
}

}  // namespace

std::vector<float> read_gguf_scores(const GgufVocabulary& vocabulary) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  const std::size_t tokens = vocabulary.texts.size();
  if (!vocabulary.file.has(kKey)) return std::vector<float>(tokens, 0.0F);
  const GgufArray& array = vocabulary.file.get_array(kKey);
  std::vector<float> scores;
  if (const auto* reals = std::get_if<std::vector<double>>(&array)) {
    for (const double real : *reals) scores.push_back(static_cast<float>(real));
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&array)) {
    for (const std::int64_t integer : *integers) scores.push_back(static_cast<float>(integer));
  } else {
    vocabulary.fail(ErrorCode::kInput, kKey, "expected an array of numbers");
  }
  if (scores.size() != tokens) {
    vocabulary.fail(
        ErrorCode::kInput, kKey,
        "found " + std::to_string(scores.size()) + " scores, expected " + std::to_string(tokens) + ", one per token");
  }
  const auto bad = std::find_if(scores.begin(), scores.end(), [](float score) { return !std::isfinite(score); });
  if (bad != scores.end()) {
    vocabulary.fail(
        ErrorCode::kInput, kKey,
        "the score of " + vocabulary.describe(static_cast<std::size_t>(bad - scores.begin())) + " is not finite");
  }
  return scores;
}

// Source: llama.cpp src/llama-vocab.cpp, llm_tokenizer_spm_session and llama_vocab::impl::tokenize.
TokenizerParts read_gguf_spm(GgufVocabulary vocabulary) {
  constexpr std::string_view kAddSpacePrefix = "tokenizer.ggml.add_space_prefix";
  TokenizerParts parts;
  auto bpe = make_model(vocabulary);
  // The prefix is also added after every special token, not only at the start of the text.
  if (!vocabulary.file.has(kAddSpacePrefix) || vocabulary.file.get_boolean(kAddSpacePrefix)) {
    parts.normalizers.push_back(make_prepend(" "));
  }
  parts.normalizers.push_back(make_replace(" ", std::string(kSpaceMarker)));
  const std::bitset<256> joined = bpe->bytes_joined_before(kSpaceMarker);
  if (!joined.all()) parts.steps.push_back(make_marker_split(kSpaceMarker, joined));
  parts.model = std::move(bpe);
  std::move(vocabulary).give_to(parts);
  return parts;
}

}  // namespace kvs::inline tokenizer
