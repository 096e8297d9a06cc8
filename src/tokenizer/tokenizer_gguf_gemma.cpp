// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/gguf_vocabulary.h"

namespace kvs::inline tokenizer {
namespace {

/// A word is a line with its spaces, or a run of line breaks.
constexpr std::string_view kLines = R"([^\n]+|[\n]+)";

void add_marked_tokens(Bpe& bpe, GgufVocabulary& vocabulary) {
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
    const std::string& text = vocabulary.texts[id];
    if (!vocabulary.is_special[id]) vocabulary.tokens.bytes[id] = bytes_of_marked_token(text);
    bpe.add_token(text, static_cast<std::uint32_t>(id));
  }
}

void add_marked_merges(Bpe& bpe, const GgufVocabulary& vocabulary) {
  const std::vector<std::string_view>& merges = vocabulary.strings("tokenizer.ggml.merges");
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::size_t space = merges[rank].find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merges[rank].size()) continue;
    const std::string left(merges[rank].substr(0, space)), right(merges[rank].substr(space + 1));
    const std::uint32_t a = bpe.find_or_make(left), b = bpe.find_or_make(right);
    bpe.add_merge(a, b, static_cast<std::uint32_t>(rank), bpe.find_or_make(left + right));
  }
}

/// A text that is not a token becomes the tokens of its bytes; a byte without a token is lost.
void add_byte_tokens(Bpe& bpe, const GgufVocabulary& vocabulary) {
  // No merge can name the symbols of bytes: merging does not see the names of their tokens.
  const Bpe::ByteSymbols hidden = bpe.make_hidden_bytes();
  Bpe::ByteFallback fallback;
  std::ranges::transform(hidden, fallback.begin(), [](std::uint32_t symbol) { return std::vector{symbol}; });
  bpe.set_byte_fallback(std::move(fallback));
  Bpe::ByteSymbols leftovers;
  for (std::size_t byte = 0; byte < leftovers.size(); ++byte) {
    const std::int32_t id = vocabulary.tokens.find(name_of_byte_token(static_cast<unsigned char>(byte)));
    leftovers[byte] = id < 0 ? Bpe::kNone : static_cast<std::uint32_t>(id);
  }
  bpe.set_leftovers(leftovers);
}

}  // namespace

// Source: llama.cpp src/llama-vocab.cpp, LLAMA_VOCAB_PRE_TYPE_GEMMA4 in llm_tokenizer_bpe and its session.
TokenizerParts read_gguf_gemma(GgufVocabulary vocabulary) {
  TokenizerParts parts;
  auto bpe = std::make_unique<Bpe>(vocabulary.texts.size(),
                                   BpeOptions{.unit = BpeOptions::Unit::kCharacter, .whole_runs = '\n'});
  add_marked_tokens(*bpe, vocabulary);
  add_marked_merges(*bpe, vocabulary);
  add_byte_tokens(*bpe, vocabulary);
  parts.normalizers.push_back(make_replace(" ", std::string(kSpaceMarker)));
  parts.steps.push_back(make_regex_split(Regex(kLines)));
  parts.model = std::move(bpe);
  std::move(vocabulary).give_to(parts);
  return parts;
}

}  // namespace kvs::inline tokenizer
