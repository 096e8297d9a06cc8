#pragma once

#include <string>

#include "io/json.h"
#include "tokenizer/tokenizer_settings.h"

namespace kvs {

/// What a folder says of its tokenizer's class; empty where it says nothing.
struct TokenizerClassNames {
  std::string named;       // `tokenizer_class` of tokenizer_config.json
  std::string of_model;    // `tokenizer_class` of config.json
  std::string model_type;  // of config.json
};

/// The class that AutoTokenizer of Transformers 5.24 takes, without "Fast"; empty for TokenizersBackend, which takes
/// tokenizer.json as it is.
std::string auto_tokenizer_class(const TokenizerClassNames& names, const Json& tokenizer);

/// Does to a tokenizer.json what its class does: most classes take the vocabulary and the merges alone, and build the
/// other steps themselves. A class that is not known here leaves a note.
void apply_tokenizer_class(Json& tokenizer, TokenizerSettings& settings);

}  // namespace kvs
