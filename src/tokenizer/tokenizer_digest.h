// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tokenizer/tokenizer.h"

namespace kvs::inline tokenizer {

/// Identifies a tokenizer independently of the files it comes from: SHA-256 of the ids of a fixed text with several
/// scripts, digits and code. The text avoids cases in which llama.cpp differs from a model's own tokenizer.json.
/// Returns "" for a tokenizer that refuses the text.
std::string tokenizer_digest(const Tokenizer& tokenizer);

}  // namespace kvs::inline tokenizer
