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

namespace kvs {

struct TokenizerSettings;

/// No vocabulary in use comes near it.
inline constexpr std::size_t kMaxVocabulary = std::size_t{1} << 24;
/// Ids in a file of so many bytes are below this, so that they may index memory: a token takes more than one.
constexpr std::size_t id_limit(std::size_t file_bytes) {
  return std::clamp(file_bytes, std::size_t{1} << 16, kMaxVocabulary);
}

/// The tokens of a vocabulary, for decode and find.
struct TokenTable {
  std::vector<std::string> bytes;       // by id
  std::vector<bool> known;              // by id: ids may have gaps
  StringMap<std::int32_t> ids_by_text;  // as the file writes the token

  void resize(std::size_t size) {
    bytes.resize(size);
    known.resize(size);
  }
  /// The bytes that `ids` stand for. An id that is no token has none, as in `tokenizers`: a model may predict one.
  std::string decode(const std::vector<std::int32_t>& ids) const;
  /// The id of this text, or -1.
  std::int32_t find(std::string_view text) const noexcept;
};

/// Everything that decides how a tokenizer cuts a text.
struct TokenizerParts {
  enum class AddedRule { kLeftmost, kLongestFirst };

  AddedRule added_rule = AddedRule::kLeftmost;
  AddedTokens added;             // found in the text as it is
  Normalizers normalizers;       // of what lies between them
  AddedTokens added_normalized;  // found after normalisation
  SplitSteps steps;
  std::unique_ptr<const WordModel> model;
  TokenTable tokens;
  std::int32_t bos = -1;
  bool adds_bos = false;
  std::vector<std::string> notes;
};

/// The way of Hugging Face `tokenizers`: added tokens are cut out, the rest is normalised, cut into words by one step
/// after the other, and each word goes through the model.
class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {}

  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string decode(const std::vector<std::int32_t>& ids) const override { return parts_.tokens.decode(ids); }
  std::size_t vocabulary_size() const noexcept override { return parts_.tokens.bytes.size(); }
  std::int32_t bos() const noexcept override { return parts_.bos; }
  bool adds_bos() const noexcept override { return parts_.adds_bos; }
  std::int32_t find(std::string_view token) const noexcept override { return parts_.tokens.find(token); }
  const std::vector<std::string>& notes() const noexcept override { return parts_.notes; }

 private:
  TokenizerParts parts_;
};

/// A tokenizer from the bytes of a tokenizer.json. @param where  the file, for messages.
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view bytes, std::string_view where);
/// A tokenizer from the bytes of a tokenizer.model. @param settings  of the files beside it
std::unique_ptr<Tokenizer> parse_tokenizer_model(std::string_view bytes, std::string_view where,
                                                 const TokenizerSettings& settings);

}  // namespace kvs
