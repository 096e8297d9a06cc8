// parse_json accepts only what the library's own parser accepts, with the same result, and survives being read by a
// cursor; what it accepted is written and read back unchanged.
#include "io/json.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using kvs::Json;
using kvs::JsonCursor;
using kvs::fuzz::require;

/// Asks every getter of every value. The answer or the refusal must agree with the value's kind.
void read_everything(const JsonCursor& cursor) {
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
    for (std::size_t index = 0; index < cursor.array_size(); ++index) read_everything(cursor.at(index));
  if (value.is_object())
    for (const std::string& key : cursor.keys()) read_everything(cursor.at(key));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  kvs::fuzz::accept_or_refuse([&] {
    const Json value = kvs::parse_json(text, "input", {.bytes = 1U << 20, .depth = 32, .values = 20000});
    require(Json::accept(text), "accepted what the library refuses");
    require(Json::parse(text) == value, "parsed another value than the library");
    require(kvs::parse_json(kvs::dump_json(value), "again", {.bytes = 1U << 26}) == value, "changed by writing");
    read_everything(JsonCursor(value, "input"));
  });
  return 0;
}
