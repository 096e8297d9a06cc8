// SPDX-License-Identifier: Apache-2.0
// The input is a tokenizer.model. An accepted model encodes some texts to ids that it can decode, each time the same.
#include <array>
#include <string_view>

#include "tests/fuzz/fuzz_target.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/tokenizer_settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr std::array<std::string_view, 4> kTexts{
      "", "ab  Aab\n usr<s>b A", "\xC3\xA9\xE2\x96\x81\xF0\x9F\x98\x80 A", std::string_view("\0a\0", 3)};
  kvs::fuzz::accept_or_refuse([&] {
    const auto tokenizer = kvs::parse_tokenizer_model({reinterpret_cast<const char*>(data), size}, "input", {});
    for (const std::string_view text : kTexts) {
      const auto ids = tokenizer->encode(text);
      kvs::fuzz::require(tokenizer->encode(text) == ids, "two results for one text");
      tokenizer->decode(ids);
    }
  });
  return 0;
}
