// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "io/gguf.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace kvs::inline tokenizer {

inline constexpr std::string_view kGgufTokens = "tokenizer.ggml.tokens";

/// enum llama_token_type of llama.h.
enum GgufTokenType : std::int32_t {
  kGgufNormal = 1,
  kGgufUnknown,
  kGgufControl,
  kGgufUserDefined,
  kGgufUnused,
  kGgufByte
};

/// The parts that all tokenizers of GGUF files share, and the error messages of their readers.
struct GgufVocabulary {
  explicit GgufVocabulary(const GgufFile& source) : file(source), where(source.path().string()) {}

  const GgufFile& file;
  std::string where;               // the file, for messages
  std::vector<std::string> texts;  // by id, not empty
  std::vector<bool> is_special;    // by id: only found as a whole
  TokenTable tokens;               // filled in for special tokens only
  std::vector<AddedToken> added;   // the special tokens
  std::vector<bool> is_shown;      // by id: special tokens that a decoded text shows (user-defined)
  std::vector<std::string> notes;  // possible differences from the file
  std::int32_t bos = -1;
  bool adds_bos = false;  // false without a BOS

  [[noreturn]] void fail(ErrorCode code, std::string_view key, const std::string& problem) const;
  static std::string shown(std::string_view text);
  /// Returns an array of strings. @throws Error kInput for another type or more than kMaxVocabulary strings.
  const std::vector<std::string_view>& strings(std::string_view key) const;
  /// Returns "token 5 \"abc\"".
  std::string describe(std::size_t id) const;
  /// Moves the parts that do not depend on the model: tokens, BOS, and special tokens, which are found longest first.
  void give_to(TokenizerParts& parts) &&;
};

/// Returns the id of a special token that the file states, such as "bos_token_id". Returns nullopt if it states none,
/// or an id that is not below `tokens` (llama.cpp warns about such an id and ignores it).
std::optional<std::int32_t> stated_gguf_token(const GgufFile& file, const std::string& name, std::size_t tokens);

/// @throws Error kInput for tokens that are invalid or not unique, or for types that do not fit the tokens.
GgufVocabulary read_gguf_vocabulary(const GgufFile& file);
/// Returns the scores of a SentencePiece vocabulary by id, as f32, which is how llama.cpp compares them.
/// @throws Error kInput if their number is not that of the tokens, or one is not finite.
std::vector<float> read_gguf_scores(const GgufVocabulary& vocabulary);

/// Reads `tokenizer.ggml.model` = "gpt2": byte-level BPE, split according to `tokenizer.ggml.pre`.
TokenizerParts read_gguf_bpe(GgufVocabulary vocabulary);
/// Reads `tokenizer.ggml.model` = "llama": SentencePiece's BPE, which merges the pair with the highest score.
TokenizerParts read_gguf_spm(GgufVocabulary vocabulary);
/// Reads `tokenizer.ggml.model` = "gemma4": BPE over the characters of lines, whose spaces are markers.
TokenizerParts read_gguf_gemma(GgufVocabulary vocabulary);

}  // namespace kvs::inline tokenizer
