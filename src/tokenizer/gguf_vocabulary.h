#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "io/gguf.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace kvs {

inline constexpr std::string_view kGgufTokens = "tokenizer.ggml.tokens";

/// enum llama_token_type (llama.h)
enum GgufTokenType : std::int32_t {
  kGgufNormal = 1,
  kGgufUnknown,
  kGgufControl,
  kGgufUserDefined,
  kGgufUnused,
  kGgufByte
};

/// What the tokenizers of a GGUF file have in common, and how their readers refuse.
struct GgufVocabulary {
  explicit GgufVocabulary(const GgufFile& source) : file(source), where(source.path().string()) {}

  const GgufFile& file;
  std::string where;               // the file, for messages
  std::vector<std::string> texts;  // by id, not empty
  std::vector<bool> is_special;    // by id: only ever found as a whole
  TokenTable tokens;               // the bytes of special ones are filled in
  std::vector<AddedToken> added;   // the special ones
  std::vector<bool> is_shown;      // by id: of the special ones, those that a decoded text shows (user-defined)
  std::vector<std::string> notes;  // on what may differ from what the file says
  std::int32_t bos = -1;
  bool adds_bos = false;  // never without one

  [[noreturn]] void fail(ErrorCode code, std::string_view key, const std::string& problem) const;
  static std::string shown(std::string_view text);
  /// The strings of an array. @throws Error kInput if it holds others, or more than kMaxVocabulary.
  const std::vector<std::string_view>& strings(std::string_view key) const;
  /// "token 5 \"abc\""
  std::string describe(std::size_t id) const;
  /// What no model changes: tokens, BOS, and special tokens, which are found longest first.
  void give_to(TokenizerParts& parts) &&;
};

/// The id of a special token that the file states, such as "bos_token_id"; nothing where it states none or one that is
/// not below `tokens`: llama.cpp warns of such an id and passes over it.
std::optional<std::int32_t> stated_gguf_token(const GgufFile& file, const std::string& name, std::size_t tokens);

/// @throws Error kInput on tokens that are none or not unique, types that do not fit them.
GgufVocabulary read_gguf_vocabulary(const GgufFile& file);
/// By id, of SentencePiece's kind of vocabulary. As f32, which is how llama.cpp compares them.
/// @throws Error kInput if there are not as many as tokens, or one is not finite.
std::vector<float> read_gguf_scores(const GgufVocabulary& vocabulary);

/// `tokenizer.ggml.model` = "gpt2": byte-level BPE, split as `tokenizer.ggml.pre` says.
TokenizerParts read_gguf_bpe(GgufVocabulary vocabulary);
/// `tokenizer.ggml.model` = "llama": SentencePiece's BPE, which merges the pair whose token has the highest score.
TokenizerParts read_gguf_spm(GgufVocabulary vocabulary);

}  // namespace kvs
