// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace kvs::inline tokenizer {

/// Bytes [begin, end) of a text.
struct TextRange {
  std::size_t begin = 0, end = 0;
};

}  // namespace kvs::inline tokenizer
