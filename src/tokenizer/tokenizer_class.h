// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/json.h"
#include "tokenizer/tokenizer_settings.h"

namespace kvs::inline tokenizer {

/// The tokenizer class and model type that a folder states; a field is empty if the folder does not state it.
struct TokenizerClassNames {
  std::string named;       // `tokenizer_class` of tokenizer_config.json
  std::string of_model;    // `tokenizer_class` of config.json
  std::string model_type;  // of config.json
};

/// Returns the class that AutoTokenizer of Transformers 5.24 uses, without "Fast"; empty for TokenizersBackend, which
/// uses tokenizer.json unchanged.
std::string auto_tokenizer_class(const TokenizerClassNames& names, const Json& tokenizer);

/// Changes a tokenizer.json as its class does: most classes use only its vocabulary and merges and build the other
/// steps themselves. An unknown class leaves a note.
void apply_tokenizer_class(Json& tokenizer, TokenizerSettings& settings);

}  // namespace kvs::inline tokenizer
