#pragma once

#include <filesystem>
#include <memory>

#include "io/json.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_settings.h"

namespace kvs {

/// A folder's tokenizer as AutoTokenizer of Transformers makes it.
struct AutoTokenizerFile {
  /// tokenizer.json with the steps of the folder's class; `added_tokens` are all, with the ids that they get.
  Json document;
  TokenizerSettings settings;
  std::unique_ptr<Tokenizer> tokenizer;
};
/// @param path  the tokenizer.json  @throws Error as load_tokenizer_json
AutoTokenizerFile read_auto_tokenizer(const std::filesystem::path& path);

}  // namespace kvs
