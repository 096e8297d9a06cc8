// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text_range.h"

namespace kvs::inline io {
class GgufFile;
}  // namespace kvs::inline io

namespace kvs::inline tokenizer {

/// Converts text to token ids as in the model's training. Thread-safe after construction.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Returns the ids of `text` (valid UTF-8). Special tokens in the text are parsed; none are added.
  std::vector<std::int32_t> encode(std::string_view text) const { return encode_turns(text, {}); }
  /// Like encode(), for a text of a chat template.
  /// @param literal  what users wrote, ascending: special tokens in it are plain text, except those that a
  ///                 tokenizer.json searches for after normalisation
  virtual std::vector<std::int32_t> encode_turns(std::string_view text, std::span<const TextRange> literal) const = 0;
  /// Returns the bytes of `ids`. An id without a token (a model may predict one) has no bytes, as in `tokenizers`.
  virtual std::string decode(const std::vector<std::int32_t>& ids) const = 0;
  virtual std::size_t vocabulary_size() const noexcept = 0;
  /// Returns the begin-of-sequence id, or -1 if the model has none.
  virtual std::int32_t bos() const noexcept = 0;
  /// Returns true if the model's files ask for that token before every text. llama.cpp and Transformers follow them.
  virtual bool adds_bos() const noexcept = 0;
  /// Returns the id of exactly this token text, or -1.
  virtual std::int32_t find(std::string_view token) const noexcept = 0;
  /// Returns notes for the user: where ids may differ from those of the program that the files belong to.
  virtual const std::vector<std::string>& notes() const noexcept {
    static const std::vector<std::string> kNone;
    return kNone;
  }
};

enum class BosChoice { kAuto, kOn, kOff };  // kAuto: if the model's files ask for it

/// Returns the id that a text begins with, or -1 for none. @throws Error kUsage for kOn if the model has none.
std::int32_t chosen_bos(const Tokenizer& tokenizer, BosChoice choice);
/// Inserts `bos` before `ids` unless they begin with it. @param bos  -1: does nothing
void begin_with(std::int32_t bos, std::vector<std::int32_t>& ids);

/// Loads a Hugging Face tokenizer.json and the files next to it (docs/tokenizers.md). The ids equal those of
/// AutoTokenizer of Transformers 5.24. BOS is the token that the template puts before a text, otherwise the files'
/// `bos_token`.
/// @throws Error kInput if malformed; kUnsupported, by name, for an unknown model, normalizer, pre-tokenizer or
/// pattern.
std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& path);
/// Loads a SentencePiece tokenizer.model (BPE or Unigram) with libsentencepiece, and the added_tokens.json next to it.
/// `add_bos_token` of the tokenizer_config.json next to it asks for BOS.
/// @throws Error kInput if malformed; kUnsupported for other models.
std::unique_ptr<Tokenizer> load_tokenizer_model(const std::filesystem::path& path);
/// Loads the tokenizer of GGUF metadata. The ids equal those of llama.cpp with special tokens parsed.
/// `tokenizer.ggml.model` decides the model, `tokenizer.ggml.pre` the split. @throws like load_tokenizer_json()
std::unique_ptr<Tokenizer> load_tokenizer_gguf(const GgufFile& file);

}  // namespace kvs::inline tokenizer
