#pragma once

#include <string>

#include "tokenizer/tokenizer.h"

namespace kvs {

/// What makes two tokenizers the same, whatever files they come from: the SHA-256 of the ids of a fixed text of several
/// scripts, digits and code. The text leaves out what llama.cpp cuts otherwise than a model's own tokenizer.json. Empty
/// for a tokenizer that refuses the text.
std::string tokenizer_digest(const Tokenizer& tokenizer);

}  // namespace kvs
