// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/gguf_vocabulary.h"

namespace kvs::inline tokenizer {
namespace {

const GgufPreTokenizer& find_pre(const GgufVocabulary& vocabulary) {
  constexpr std::string_view kKey = "tokenizer.ggml.pre";
  const std::string_view name = vocabulary.file.has(kKey) ? vocabulary.file.get_string(kKey) : "default";
  const GgufPreTokenizer* pre = find_gguf_pre_tokenizer(name);
  if (pre == nullptr) {
    vocabulary.fail(
        ErrorCode::kUnsupported, kKey,
        "found pre-tokenizer " + GgufVocabulary::shown(name) + ", supported: those that docs/tokenizers.md lists");
  }
  return *pre;
}

void add_tokens(Bpe& bpe, GgufVocabulary& vocabulary) {
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
    std::optional<std::string> bytes = bytes_of_token(vocabulary.texts[id]);
    // No word can produce a text outside the byte alphabet.
    if (!vocabulary.is_special[id]) vocabulary.tokens.bytes[id] = bytes.value_or(vocabulary.texts[id]);
    if (bytes) bpe.add_token(std::move(*bytes), static_cast<std::uint32_t>(id));
  }
}

void add_merges(Bpe& bpe, const GgufVocabulary& vocabulary) {
  constexpr std::string_view kKey = "tokenizer.ggml.merges";
  const std::vector<std::string_view>& merges = vocabulary.strings(kKey);
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const std::size_t space = merge.find(' ', 1);
    const auto left = bytes_of_token(merge.substr(0, space));
    const auto right = space == std::string_view::npos ? std::nullopt : bytes_of_token(merge.substr(space + 1));
    if (!left || !right || left->empty() || right->empty()) continue;  // no word has such texts (as llama.cpp)
    const std::uint32_t a = bpe.find_or_make(*left), b = bpe.find_or_make(*right);
    bpe.add_merge(a, b, static_cast<std::uint32_t>(rank), bpe.find_or_make(*left + *right));
  }
}

/// llama.cpp merges any texts, also those that are not tokens. A resulting text that is not a token becomes the tokens
/// of its printable ASCII bytes; its other bytes are lost.
void keep_bytes_that_are_no_token(Bpe& bpe, std::size_t tokens) {
  Bpe::ByteSymbols leftovers;
  leftovers.fill(Bpe::kNone);
  for (int byte = 0; byte < 256; ++byte) {
    const std::uint32_t symbol = bpe.find_or_make(std::string(1, static_cast<char>(byte)));
    if (byte >= 0x21 && byte <= 0x7E && symbol < tokens) leftovers[static_cast<std::size_t>(byte)] = symbol;
  }
  bpe.set_leftovers(leftovers);
}

}  // namespace

TokenizerParts read_gguf_bpe(GgufVocabulary vocabulary) {
  const GgufPreTokenizer& pre = find_pre(vocabulary);
  TokenizerParts parts;
  for (const std::string_view pattern : pre.patterns) {
    parts.steps.push_back(make_regex_split(Regex(pattern, false, Unicode::k15)));
  }
  auto bpe = std::make_unique<Bpe>(vocabulary.texts.size(), BpeOptions{.ignore_merges = pre.ignore_merges});
  add_tokens(*bpe, vocabulary);
  keep_bytes_that_are_no_token(*bpe, vocabulary.texts.size());
  add_merges(*bpe, vocabulary);
  parts.model = std::move(bpe);
  std::move(vocabulary).give_to(parts);
  return parts;
}

}  // namespace kvs::inline tokenizer
