// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace kvs::inline run {

/// Prints generated text on stdout token by token, without the bytes of an incomplete character.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// Adds a generated token and prints the characters that are complete.
  void add(std::int32_t id);
  /// Prints the rest of `text`, which is all that was generated, and the end of the line.
  void end(const std::string& text);

 private:
  void print(std::string_view text, std::size_t end);

  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ids_;
  std::size_t shown_ = 0;
  bool terminal_ = isatty(STDOUT_FILENO) == 1;
};

}  // namespace kvs::inline run
