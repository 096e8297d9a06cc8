// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "io/json.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_settings.h"

namespace kvs::inline tokenizer {

/// The tokenizer that AutoTokenizer of Transformers makes of a folder.
struct AutoTokenizerFile {
  /// tokenizer.json with the steps of the folder's class; `added_tokens` holds all added tokens with their final ids.
  Json document;
  TokenizerSettings settings;
  std::unique_ptr<Tokenizer> tokenizer;
};
/// @param path  the tokenizer.json  @throws Error like load_tokenizer_json()
AutoTokenizerFile read_auto_tokenizer(const std::filesystem::path& path);

}  // namespace kvs::inline tokenizer
