// SPDX-License-Identifier: Apache-2.0
#include "run/text_stream.h"

#include <algorithm>
#include <iostream>

#include "core/error.h"
#include "core/utf8.h"

namespace kvs::inline run {

void TextStream::add(std::int32_t id) {
  ids_.push_back(id);
  const std::string text = tokenizer_.decode(ids_);
  print(text, std::min(find_invalid_utf8(text), text.size()));
}

void TextStream::end(const std::string& text) {
  print(text, text.size());
  std::cout << std::endl;
}

void TextStream::print(std::string_view text, std::size_t end) {
  if (end <= shown_) return;
  const std::string_view piece = text.substr(shown_, end - shown_);
  std::cout << (terminal_ ? printable_text(piece) : std::string(piece)) << std::flush;
  shown_ = end;
}

}  // namespace kvs::inline run
