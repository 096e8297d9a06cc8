// SPDX-License-Identifier: Apache-2.0
// The input is a tokenizer.json, a NUL byte and a text. An accepted tokenizer encodes the text to ids that it can
// decode, each time the same; a text that is not UTF-8 is skipped.
#include <algorithm>
#include <string_view>

#include "core/utf8.h"
#include "tests/fuzz/fuzz_target.h"
#include "tokenizer/pipeline_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t nul = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(std::min(nul + 1, input.size()));
  kvs::fuzz::accept_or_refuse([&] {
    const auto tokenizer = kvs::parse_tokenizer_json(input.substr(0, nul), "input");
    if (kvs::find_invalid_utf8(text) != std::string_view::npos) return;
    const auto ids = tokenizer->encode(text);
    kvs::fuzz::require(tokenizer->encode(text) == ids, "two results for one text");
    tokenizer->decode(ids);
  });
  return 0;
}
