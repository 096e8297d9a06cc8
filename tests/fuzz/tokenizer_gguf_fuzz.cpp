// SPDX-License-Identifier: Apache-2.0
// The input is lines: tokenizer.ggml.model, tokenizer.ggml.pre, tokens each with a tab and its type up to an empty
// line, merges up to an empty line, and then a text. Later tokens have lower scores. An accepted tokenizer encodes the
// text to ids that it can decode, each time the same; a text that is not UTF-8 is skipped.
#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "core/utf8.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/io/fake_gguf.h"
#include "tokenizer/tokenizer.h"

namespace {

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  kvs::FakeGguf file;
  file.values["tokenizer.ggml.model"] = take_line(rest);
  file.values["tokenizer.ggml.pre"] = take_line(rest);
  std::vector<std::string_view> tokens, merges;
  std::vector<std::int64_t> types;
  std::vector<double> scores;
  for (std::string_view line = take_line(rest); !line.empty(); line = take_line(rest)) {
    const std::size_t tab = std::min(line.rfind('\t'), line.size());
    std::int64_t type = 1;
    if (tab < line.size()) std::from_chars(line.data() + tab + 1, line.data() + line.size(), type);
    tokens.push_back(line.substr(0, tab));
    types.push_back(type);
    scores.push_back(-static_cast<double>(tokens.size() / 2));  // some are equal
  }
  for (std::string_view line = take_line(rest); !line.empty(); line = take_line(rest)) merges.push_back(line);
  file.values["tokenizer.ggml.tokens"] = kvs::GgufArray(tokens);
  file.values["tokenizer.ggml.token_type"] = kvs::GgufArray(types);
  file.values["tokenizer.ggml.scores"] = kvs::GgufArray(scores);
  file.values["tokenizer.ggml.merges"] = kvs::GgufArray(merges);
  kvs::fuzz::accept_or_refuse([&] {
    const auto tokenizer = kvs::load_tokenizer_gguf(file);
    if (kvs::find_invalid_utf8(rest) != std::string_view::npos) return;
    const auto ids = tokenizer->encode(rest);
    kvs::fuzz::require(tokenizer->encode(rest) == ids, "two results for one text");
    tokenizer->decode(ids);
  });
  return 0;
}
