#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvs {

class GgufFile;

/// Text to token ids, as the model was trained with. Thread-safe after construction.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Ids of `text` (valid UTF-8), special tokens in it parsed, none added.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// The bytes that `ids` stand for. An id that is no token has none, as in `tokenizers`: a model may predict one.
  virtual std::string decode(const std::vector<std::int32_t>& ids) const = 0;
  virtual std::size_t vocabulary_size() const noexcept = 0;
  /// The begin-of-sequence id, or -1 if the model has none.
  virtual std::int32_t bos() const noexcept = 0;
  /// Whether the model's files ask for that token before every text: what llama.cpp and Transformers do with them.
  virtual bool adds_bos() const noexcept = 0;
  /// The id of exactly this token text, or -1.
  virtual std::int32_t find(std::string_view token) const noexcept = 0;
  /// What a user should know of it: where its ids may be others than those of the program whose file it is.
  virtual const std::vector<std::string>& notes() const noexcept {
    static const std::vector<std::string> kNone;
    return kNone;
  }
};

enum class BosChoice { kAuto, kOn, kOff };  // kAuto: where the model's files ask for it

/// The id that a text begins with, or -1 for none. @throws Error kUsage for kOn if the model has none.
std::int32_t chosen_bos(const Tokenizer& tokenizer, BosChoice choice);
/// Puts `bos` before `ids` unless they begin with it. @param bos  -1: nothing
void begin_with(std::int32_t bos, std::vector<std::int32_t>& ids);

/// From a Hugging Face tokenizer.json and the files beside it (docs/tokenizers.md), id for id with AutoTokenizer of
/// Transformers 5.24; BOS is what the template puts before a text, else the files' `bos_token`.
/// @throws Error kInput if malformed; kUnsupported, by name, for a model, normalizer, pre-tokenizer or pattern it does
/// not know.
std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& path);
/// From a SentencePiece tokenizer.model, BPE or Unigram, by libsentencepiece, and the added_tokens.json beside it; the
/// `add_bos_token` of tokenizer_config.json beside it asks for BOS.
/// @throws Error kInput if malformed; kUnsupported for other models.
std::unique_ptr<Tokenizer> load_tokenizer_model(const std::filesystem::path& path);
/// From GGUF metadata (id for id with llama.cpp, special tokens parsed); `tokenizer.ggml.model` decides the
/// model, `tokenizer.ggml.pre` the split. @throws as load_tokenizer_json.
std::unique_ptr<Tokenizer> load_tokenizer_gguf(const GgufFile& file);

}  // namespace kvs
