#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/tokenizer_settings.h"

namespace kvs {

/// Tokens added to a vocabulary one by one, with the ids that `tokenizers` gives them (AddedVocabulary::add_tokens):
/// the id of a text that is a token already, else the first one after the vocabulary, or after the highest added one.
class AddedVocabulary {
 public:
  /// @param size  the number of the model's tokens, which with gaps is less than their highest id
  AddedVocabulary(TokenTable& tokens, std::size_t size) : tokens_(tokens), size_(size) {}

  /// The token's id, or -1 for an empty text, which can match nothing. The last to add a text decides how it is found.
  std::int32_t add(const AddedSpec& token);
  /// All of files beside the vocabulary, as Transformers adds them (TokenizersBackend.__init__), but for what is there
  /// already. @return a note for each token that got another id than its file states
  std::vector<std::string> add_all(const TokenizerSettings& settings);
  /// "the added token "<x>" has id 5, as the package tokenizers gives it; the file says 9", or empty.
  static std::string other_id_note(const AddedSpec& token, std::uint64_t stated, std::int32_t id);
  bool has(const AddedSpec& token) const;
  bool has_text(std::string_view text) const;
  /// Those that are found in the text as it is, or after normalisation. @param split_special  special ones are split
  std::vector<AddedToken> tokens(bool normalized, bool split_special) const;
  /// As `added_tokens` of a tokenizer.json has them.
  Json json() const;

 private:
  std::int32_t next_id() const;

  TokenTable& tokens_;
  std::size_t size_;
  std::map<std::int32_t, AddedSpec> by_id_;
  std::set<std::string, std::less<>> special_;  // texts that were special once
};

}  // namespace kvs
