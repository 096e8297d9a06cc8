// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/split.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/word_model.h"

namespace kvs::inline tokenizer {

struct TokenizerSettings;

/// Far more tokens than any vocabulary in use has.
inline constexpr std::size_t kMaxVocabulary = std::size_t{1} << 24;
/// Returns a limit for the ids in a file of `file_bytes` bytes, so that ids may index memory: a token takes more than
/// one byte of the file.
constexpr std::size_t id_limit(std::size_t file_bytes) {
  return std::clamp(file_bytes, std::size_t{1} << 16, kMaxVocabulary);
}

/// The tokens of a vocabulary, for decode() and find().
struct TokenTable {
  std::vector<std::string> bytes;       // by id
  std::vector<bool> known;              // by id: ids may have gaps
  StringMap<std::int32_t> ids_by_text;  // text as the file writes the token

  void resize(std::size_t size) {
    bytes.resize(size);
    known.resize(size);
  }
  /// Returns the bytes of `ids`. An id without a token (a model may predict one) has no bytes, as in `tokenizers`.
  std::string decode(const std::vector<std::int32_t>& ids) const;
  /// Returns the id of this text, or -1.
  std::int32_t find(std::string_view text) const noexcept;
};

/// All parts that decide how a tokenizer cuts a text.
struct TokenizerParts {
  enum class AddedRule { kLeftmost, kLongestFirst };

  AddedRule added_rule = AddedRule::kLeftmost;
  AddedTokens added;             // found before normalisation
  Normalizers normalizers;       // for the text between added tokens
  AddedTokens added_normalized;  // found after normalisation
  SplitSteps steps;
  std::unique_ptr<const WordModel> model;
  TokenTable tokens;
  std::int32_t bos = -1;
  bool adds_bos = false;
  std::vector<std::string> notes;
};

/// Tokenises as Hugging Face `tokenizers` does. Cuts out the added tokens, normalises the rest, cuts it into words by
/// one step after the other, and passes each word to the model.
class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {}

  std::vector<std::int32_t> encode_turns(std::string_view text, std::span<const TextRange> literal) const override;
  std::string decode(const std::vector<std::int32_t>& ids) const override { return parts_.tokens.decode(ids); }
  std::size_t vocabulary_size() const noexcept override { return parts_.tokens.bytes.size(); }
  std::int32_t bos() const noexcept override { return parts_.bos; }
  bool adds_bos() const noexcept override { return parts_.adds_bos; }
  std::int32_t find(std::string_view token) const noexcept override { return parts_.tokens.find(token); }
  const std::vector<std::string>& notes() const noexcept override { return parts_.notes; }

 private:
  TokenizerParts parts_;
};

/// Creates a tokenizer from the bytes of a tokenizer.json. @param where  the file, for messages
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view bytes, std::string_view where);
/// Creates a tokenizer from the bytes of a tokenizer.model. @param settings  from the files next to it
std::unique_ptr<Tokenizer> parse_tokenizer_model(std::string_view bytes, std::string_view where,
                                                 const TokenizerSettings& settings);

}  // namespace kvs::inline tokenizer
