// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tokenizer/tokenizer.h"

namespace kvs::inline model {

/// Wraps a tokenizer that has more tokens than its model's embedding has rows. The ids are unchanged, but a text that
/// needs a token beyond the rows is refused, and a begin-of-sequence token beyond the rows counts as none.
/// @param where  the tokenizer's file, for messages
std::unique_ptr<Tokenizer> bound_tokenizer(std::unique_ptr<Tokenizer> tokenizer, std::size_t rows, std::string where);

}  // namespace kvs::inline model
