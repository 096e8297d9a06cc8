// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline tokenizer {

/// Tokens that are added to a vocabulary one by one. Ids are assigned as `tokenizers` does
/// (AddedVocabulary::add_tokens): a text that is already a token keeps its id; otherwise the first id after the
/// vocabulary and all added tokens.
class AddedVocabulary {
 public:
  /// @param size  number of the model's tokens; if ids have gaps, it is less than the highest id
  AddedVocabulary(TokenTable& tokens, std::size_t size) : tokens_(tokens), size_(size) {}

  /// Adds a token. @return its id, or -1 for an empty text, which matches nothing. If a text is added again, the last
  /// addition decides how it is found.
  std::int32_t add(const AddedSpec& token);
  /// Adds the tokens of the files next to the vocabulary, in the order of Transformers (TokenizersBackend.__init__),
  /// except those already added. @return a note for each token whose id differs from the one in its file
  std::vector<std::string> add_all(const TokenizerSettings& settings);
  /// Returns "the added token "<x>" has id 5, as the package tokenizers gives it; the file says 9", or "".
  static std::string other_id_note(const AddedSpec& token, std::uint64_t stated, std::int32_t id);
  bool has(const AddedSpec& token) const;
  bool has_text(std::string_view text) const;
  /// Returns the tokens that are found in the text before normalisation (`normalized` false) or after it (true).
  /// @param split_special  special tokens are split
  std::vector<AddedToken> tokens(bool normalized, bool split_special) const;
  /// Returns the tokens in the form of `added_tokens` of a tokenizer.json.
  Json json() const;

 private:
  std::int32_t next_id() const;

  TokenTable& tokens_;
  std::size_t size_;
  std::map<std::int32_t, AddedSpec> by_id_;
  std::set<std::string, std::less<>> special_;  // texts that have been special at some time
};

}  // namespace kvs::inline tokenizer
