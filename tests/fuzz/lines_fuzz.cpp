// SPDX-License-Identifier: Apache-2.0
// Lines of a tokens file: parse_token_line() accepts exactly the arrays of ids below the size of the vocabulary that
// the JSON parser accepts. The same bytes as text: the replacement of invalid UTF-8 is valid, and changes nothing else.
#include <algorithm>
#include <optional>

#include "core/utf8.h"
#include "io/json_line.h"
#include "tests/fuzz/fuzz_target.h"
#include "texts/text_source.h"
#include "texts/token_line.h"

namespace {

using kvs::Json;
using kvs::fuzz::require;

constexpr std::size_t kVocabulary = 1000;

bool is_id(const Json& value) { return value.is_number_unsigned() && value.get<std::uint64_t>() < kVocabulary; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  std::optional<Json> ids, json;
  kvs::fuzz::accept_or_refuse([&] { ids = kvs::parse_token_line(line, "input", kVocabulary); });
  kvs::fuzz::accept_or_refuse([&] { json = kvs::parse_json_line(line, "input", true); });
  const bool is_list = json && json->is_array() && std::all_of(json->begin(), json->end(), is_id);
  require(ids.has_value() == is_list, "the parsers disagree whether it is a list of ids");
  require(!ids || *ids == *json, "the parsers read other ids");

  std::size_t replaced = 0;
  const std::string text = kvs::replace_invalid_utf8(line, replaced);
  require(kvs::find_invalid_utf8(text) == text.npos, "invalid UTF-8 is left");
  require((replaced == 0) == (text == line), "bytes changed that were valid");
  return 0;
}
