// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "io/json.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace kvs::inline tokenizer {

/// Shared by the readers of a tokenizer.json's parts: the file's name, and the error messages.
struct TokenizerJson {
  std::string where;
  std::size_t ids;  // upper limit of ids (exclusive)

  static std::string shown(std::string_view text) { return '"' + printable(text, 100) + '"'; }
  [[noreturn]] void unsupported(const JsonCursor& at, std::string_view what, std::string_view name,
                                std::string_view supported) const {
    throw Error(ErrorCode::kUnsupported, where + ": " + at.pointer(),
                "found " + std::string(what) + ' ' + shown(name) + ", supported: " + std::string(supported));
  }
  [[noreturn]] void malformed(const JsonCursor& at, const std::string& problem) const {
    throw Error(ErrorCode::kInput, where + ": " + at.pointer(), problem);
  }
  static bool is_true(const JsonCursor& object, std::string_view key) {
    return object.has(key) && object.at(key).boolean();
  }
  std::uint64_t id_at(const JsonCursor& cursor) const { return cursor.unsigned_integer(ids - 1); }
};

/// All steps between added tokens and the model.
struct JsonSteps {
  Normalizers normalizers;
  SplitSteps splits;
  bool has_byte_level = false;  // words reach the model in GPT-2's byte alphabet
};
JsonSteps read_tokenizer_steps(const JsonCursor& root, const TokenizerJson& file);

/// Reads a tokenizer.json's `model` in two passes, because added tokens may replace tokens of the vocabulary.
class JsonModelReader {
 public:
  virtual ~JsonModelReader() = default;
  /// Returns the highest id + 1.
  virtual std::uint64_t size() const = 0;
  /// Returns the number of tokens: less than size() if ids have gaps.
  virtual std::size_t count() const = 0;
  /// Registers each token in `tokens`, which has the right size.
  virtual void claim_tokens(TokenTable& tokens) const = 0;
  /// Returns the model. Fills in the bytes of the tokens that have none yet.
  virtual std::unique_ptr<const WordModel> read(TokenTable& tokens, SplitSteps& splits) const = 0;
};
/// @throws Error kUnsupported for an unknown model or option.
std::unique_ptr<JsonModelReader> make_model_reader(const JsonCursor& model, const TokenizerJson& file,
                                                   bool is_byte_level);

}  // namespace kvs::inline tokenizer
