#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/tokenizer/added_tokens.h"
#include "io/tokenizer/bpe.h"
#include "io/tokenizer/split.h"
#include "io/tokenizer/tokenizer.h"

namespace kvs {

/// No vocabulary in use comes near it; ids from files are refused above it, so that they may index memory.
inline constexpr std::size_t kMaxVocabulary = std::size_t{1} << 24;

/// `text` (valid UTF-8) in Unicode normalisation form C, by utf8proc.
std::string to_nfc(std::string_view text);

/// Everything that decides how a byte-level BPE tokenizer cuts a text.
struct BpeTokenizerParts {
  enum class AddedRule { kLeftmost, kLongestFirst };

  Bpe bpe{0, false};
  AddedRule added_rule = AddedRule::kLeftmost;
  AddedTokens added;             // found in the text as it is
  AddedTokens added_normalized;  // found after normalisation
  bool nfc = false;              // normalise to NFC what lies between the first kind
  SplitSteps steps;
  std::vector<std::string> token_bytes;  // by id, for decode
  std::vector<bool> known_ids;           // ids may have gaps
  StringMap<std::int32_t> ids_by_text;   // as the file writes the token
  std::int32_t bos = -1;
};

/// Byte-level BPE: added tokens are cut out, the rest is normalised, cut into words, and each word merged.
class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeTokenizerParts parts) : parts_(std::move(parts)) {}

  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string decode(const std::vector<std::int32_t>& ids) const override;
  std::size_t vocabulary_size() const noexcept override { return parts_.token_bytes.size(); }
  std::int32_t bos() const noexcept override { return parts_.bos; }
  std::int32_t find(std::string_view token) const noexcept override;

 private:
  BpeTokenizerParts parts_;
};

/// A tokenizer from the bytes of a tokenizer.json. @param where  the file, for messages.
/// @param bos  text of the begin-of-sequence token, or empty
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view bytes, std::string_view where,
                                                std::string_view bos = {});

}  // namespace kvs
