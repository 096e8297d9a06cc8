// SPDX-License-Identifier: Apache-2.0
// parse_json accepts only inputs that the library's own parser and RapidJSON accept, with the same result, and a cursor
// can read them. An accepted value is written and read back unchanged.
#ifdef __clang__  // RapidJSON 1.1.0 adds to null pointers
#pragma clang attribute push(__attribute__((no_sanitize("undefined"))), apply_to = function)
#endif
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#ifdef __clang__
#pragma clang attribute pop
#endif

#include <cstdlib>

#include "core/checked.h"
#include "io/json.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using kvs::Json;
using kvs::JsonCursor;
using kvs::fuzz::require;

/// Makes a Json of RapidJSON's events.
class Builder {
 public:
  bool Null() { return put(nullptr); }
  bool Bool(bool value) { return put(value); }
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
  /// Uses the C++ library: RapidJSON 1.1.0 rounds some numbers twice.
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    const std::string number(text, size);
    if (number.find_first_of(".eE") == number.npos) {
      if (const auto value = kvs::parse_integer<std::uint64_t>(number)) return put(*value);
      if (const auto value = kvs::parse_integer<std::int64_t>(number)) return put(*value);
    }
    return put(std::strtod(number.c_str(), nullptr));
  }
  bool String(const char* text, rapidjson::SizeType size, bool) { return put(std::string(text, size)); }
  bool StartObject() { return open(Json::object()); }
  bool StartArray() { return open(Json::array()); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    keys_.emplace_back(text, size);
    return true;
  }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool EndArray(rapidjson::SizeType) { return close(); }

  const Json& value() const { return root_; }

 private:
  bool put(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_array()) {
      open_.back().push_back(std::move(value));
    } else {
      open_.back()[keys_.back()] = std::move(value);
      keys_.pop_back();
    }
    return true;
  }
  bool open(Json empty) {
    open_.push_back(std::move(empty));
    return true;
  }
  bool close() {
    Json value = std::move(open_.back());
    open_.pop_back();
    return put(std::move(value));
  }

  Json root_;
  std::vector<Json> open_;
  std::vector<std::string> keys_;
};

void compare_with_rapidjson(std::string_view text, const Json& value) {
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  Builder builder;
  constexpr unsigned kStrict = rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseValidateEncodingFlag;
  const auto result = reader.Parse<kStrict>(stream, builder);
  if (result.Code() == rapidjson::kParseErrorNumberTooBig) return;  // it takes 0e400 for one
  require(!result.IsError(), rapidjson::GetParseError_En(result.Code()));
  require(value == builder.value(), "parsed another value than RapidJSON");
}

/// Calls every getter of the first values, in pre-order. The result or the refusal must agree with the value's kind.
/// @param left  remaining number: refusals are exceptions, which take longer than all the parsers
void read_values(const JsonCursor& cursor, int& left) {
  if (left-- <= 0) return;
  const Json& value = cursor.value();
  const auto answers = [](auto&& get) {
    try {
      get();
      return true;
    } catch (const kvs::Error& error) {
      require(error.code() == kvs::ErrorCode::kInput, error.what());
      return false;
    }
  };
  require(answers([&] { cursor.string(); }) == value.is_string(), "string()");
  require(answers([&] { cursor.boolean(); }) == value.is_boolean(), "boolean()");
  require(answers([&] { cursor.real(); }) == value.is_number(), "real()");
  const bool as_integer = answers([&] { cursor.integer(); }), as_unsigned = answers([&] { cursor.unsigned_integer(); });
  require((as_integer || as_unsigned) == value.is_number_integer(), "integer()");
  if (value.is_array())
    for (std::size_t index = 0; index < cursor.array_size(); ++index) read_values(cursor.at(index), left);
  if (value.is_object())
    for (const std::string& key : cursor.keys()) read_values(cursor.at(key), left);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  kvs::fuzz::accept_or_refuse([&] {
    const Json value = kvs::parse_json(text, "input", {.bytes = 1U << 20, .depth = 32, .values = 20000});
    require(Json::accept(text), "accepted what the library refuses");
    require(Json::parse(text) == value, "parsed another value than the library");
    compare_with_rapidjson(text, value);
    require(kvs::parse_json(kvs::dump_json(value), "again", {.bytes = 1U << 26}) == value, "changed by writing");
    int values = 8;
    read_values(JsonCursor(value, "input"), values);
  });
  return 0;
}
