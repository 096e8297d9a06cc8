// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <random>

#include "io/python_json.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

/// Expects `text` to be refused with `part` in the message.
void expect_refused(std::string_view text, std::string_view part) {
  expect_error(ErrorCode::kInput, part, [&] { parse_json(text, "f.json"); });
}

TEST(ParseJson, BuildsEveryKindOfValueInOrder) {
  const Json value = parse_json(R"( {"z": [1, -2, 2.5, true, null], "a": {"": "\u00e9\n"}, "e": [], "o": {}} )", "f");
  EXPECT_EQ(value.dump(), R"({"z":[1,-2,2.5,true,null],"a":{"":"é\n"},"e":[],"o":{}})");
  EXPECT_EQ(parse_json("7", "f").dump(), "7");
}

TEST(ParseJson, AgreesWithTheLibrarysOwnParserOnALargeObject) {
  Json expected = Json::object();
  std::string text = "{";
  for (int i = 0; i < 2000; ++i) {
    expected.push_back({"key " + std::to_string(i), {i, std::to_string(i)}});
    text += (i == 0 ? "\"key " : ",\"key ") + std::to_string(i) + "\":[" + std::to_string(i) + ",\"" +
            std::to_string(i) + "\"]";
  }
  EXPECT_EQ(parse_json(text + "}", "f"), expected);
}

TEST(ParseJson, SaysTheLineAndColumnOfASyntaxError) {
  expect_refused("{\n  \"a\": nul\n}", "f.json: line 2, column 11 (byte 12): syntax error");
  expect_refused("", "line 1, column 1 (byte 0): ");
  expect_refused("[1,]", "line 1, column 4 (byte 3): ");
}

TEST(ParseJson, RefusesTextAfterTheValueAndAnUnclosedString) {  // catalogue item 65
  expect_refused("{}\n x", "line 2, column 2");
  expect_refused("{} {}", "line 1, column 4");
  expect_refused("{\"a\": \"b", "line 1, column 9");
  expect_refused("{\"a\": \"" + std::string(100000, 'b'), "missing closing quote");
}

TEST(ParseJson, RefusesOtherEncodingsAndNul) {
  using namespace std::string_view_literals;
  expect_refused("\xff\xfe{\0}\0"sv, "UTF-16");
  expect_refused("{\0}\0"sv, "line 1, column 2 (byte 1): found a NUL byte (UTF-16?)");
  expect_refused("{\"a\": 1}\0"sv, "column 9 (byte 8): found a NUL byte");
  expect_refused("{\"a\":\n \"\xff\"}", "line 2, column 3 (byte 8): found invalid UTF-8");
  expect_refused("\xef\xbb\xbf{}", "byte order mark");
  expect_refused(R"(["\ud800"])", "surrogate");
}

TEST(ParseJson, RefusesADuplicateKeyWithPlaceAndBothValues) {  // catalogue item 55
  expect_refused("{\"a\": 1,\n \"b\": {\"k\": \"x\", \"c\": 0,\n  \"k\": [1, 2]}}",
                 R"(line 3, column 3 (byte 36): duplicate key "k": found "x" and then an array of 2 elements)");
  expect_refused(R"({"a\"":1, "a\u0022":2})", R"(column 11 (byte 10): duplicate key "a"": found 1 and then 2)");
  EXPECT_NO_THROW(parse_json(R"([{"k":1},{"k":2,"q":{"k":3}}])", "f"));
}

TEST(ParseJson, LimitsTheDepthWhileParsing) {  // catalogue item 54
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json(nested(64), "f"));
  expect_refused(nested(65), "byte 64): expected at most 64 levels");
  expect_refused(nested(1'000'000), "byte 64): expected at most 64 levels");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  expect_refused(objects, "byte 320): expected at most 64 levels");  // the 65th brace, 5 bytes a level
}

TEST(ParseJson, LimitsTheBytesAndTheValues) {
  const JsonLimits limits{.bytes = 20, .depth = 4, .values = 3};
  EXPECT_NO_THROW(parse_json("[1,2]", "f", limits));
  expect_error(ErrorCode::kInput, "at most 3 values", [&] { parse_json("[1,2,3]", "f", limits); });
  expect_error(ErrorCode::kInput, "at most 3 values", [&] { parse_json("[[],[],[]]", "f", limits); });
  expect_error(ErrorCode::kInput, "found 21 bytes", [&] { parse_json(std::string(21, ' '), "f", limits); });
}

TEST(ParseJson, RefusesNumbersThatOverflowAndNonNumbers) {  // catalogue items 56 and 57
  for (const char* text : {"1e400", "-1e400", "1e999999"}) expect_refused(text, "number overflow");
  for (const char* text : {"NaN", "Infinity", "nan", "01", "+1", ".5", "1.", "0x10", "1e", "-", "'a'", "// c\n1"})
    expect_refused(text, "syntax error");
}

TEST(DumpPythonJson, WritesWhatWasRead) {
  const std::string text = R"({
  "a": NaN,
  "b": [
    Infinity,
    -Infinity,
    {}
  ],
  "\"c": [],
  "d": 1.5,
  "e": "NaN"
})";
  EXPECT_EQ(dump_python_json(parse_python_json(text, "f")), text);
  const Json finite = parse_json(R"({"a": [1, {"b": null}, [true]], "c": {"\n": "\u00e9"}, "d": []})", "f");
  EXPECT_EQ(dump_python_json(finite), dump_json(finite));
}

TEST(ParsePythonJson, TakesPythonsWordsForNumbers) {
  const Json value =
      parse_python_json(R"({"a":NaN,"b":[Infinity, -Infinity],"c":11111111,"d":"NaN \" Infinity"})", "f");
  EXPECT_TRUE(std::isnan(value.at("a").get<double>()));
  EXPECT_EQ(value.at("b").at(0).get<double>(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(value.at("b").at(1).get<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parse_python_json("NaN", "f").get<double>()));
  EXPECT_EQ(value.at("c").get<std::uint64_t>(), 11111111U);
  EXPECT_EQ(value.at("d").get<std::string>(), "NaN \" Infinity");
  for (const char* text : {"[NaN1]", "[1NaN]", "[NaNNaN]", "[--Infinity]", "[nan]", "[inf]", "[Infinity0]", "{NaN:1}"})
    expect_error(ErrorCode::kInput, "syntax error", [&] { parse_python_json(text, "f"); });
  expect_error(ErrorCode::kInput, "line 2, column 9",  // offsets are those of the text
               [&] { parse_python_json("{\"a\":NaN\n,\"b\":1, x}", "f"); });
  expect_error(ErrorCode::kInput, "/a: found nan, expected a finite number",
               [&] { (void)JsonCursor(value, "f").at("a").real(); });
  expect_error(ErrorCode::kInput, "/a: found nan, expected an integer",
               [&] { (void)JsonCursor(value, "f").at("a").integer(); });
}

TEST(ParseJson, KeepsIntegersOf64BitsExactAndTurnsLargerOnesIntoDoubles) {
  EXPECT_EQ(parse_json("18446744073709551615", "f").get<std::uint64_t>(), 18446744073709551615U);
  EXPECT_EQ(parse_json("-9223372036854775808", "f").get<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  const Json larger = parse_json("18446744073709551616", "f");
  EXPECT_TRUE(larger.is_number_float());
  EXPECT_EQ(larger.get<double>(), 0x1p64);
  EXPECT_EQ(parse_json("-0", "f").get<std::int64_t>(), 0);
  EXPECT_TRUE(std::signbit(parse_json("-0.0", "f").get<double>()));
}

TEST(ParseJson, CutsFileContentInMessages) {
  try {
    parse_json("{\"\x1b" + std::string(100000, 'b'), "f");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_LT(std::string_view(error.what()).size(), 400U);
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("\x1b")));
  }
}

TEST(DumpJson, RefusesWhatJsonCannotHoldWithItsPointer) {  // catalogue item 101
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const auto refused = [](const Json& value, std::string_view part) {
    expect_error(ErrorCode::kData, part, [&] { dump_json(value); });
  };
  refused({{"a", {1.0, {{"b/c~", nan}}}}}, "/a/1/b~1c~0: found NaN");
  refused({{"a", 1}, {"z", -infinity}}, "/z: found infinity");
  refused(nan, "the JSON document: found NaN");
  refused({{"s", "\xff"}}, "/s: found a string that is not UTF-8");
  refused({{"\xff", 1}}, "found a key that is not UTF-8");
}

TEST(DumpJson, WritesDoublesThatReadBackToTheSameBits) {
  std::mt19937_64 random(1);
  std::vector<double> numbers{0.1, -0.0, 5e-324, 1.7976931348623157e308, 1e23, 30.0, 0x1p53 + 2};
  while (numbers.size() < 20000) {
    const auto number = std::bit_cast<double>(random());
    if (std::isfinite(number)) numbers.push_back(number);
  }
  const Json back = parse_json(dump_json(numbers), "f");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_TRUE(back[i].is_number_float()) << numbers[i];
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back[i].get<double>()), std::bit_cast<std::uint64_t>(numbers[i]));
  }
  EXPECT_EQ(dump_json({0.1, 30.0}, -1), "[0.1,30.0]");
}

class Cursor : public testing::Test {
 protected:
  Json document_ = parse_json(R"({"n": 30, "f": 30.5, "t": true, "s": "30", "neg": -1, "big": 8589934592,
                                  "u": 9223372036854775808, "huge": 18446744073709551616, "nil": null,
                                  "list": [1, {"a/b": "x"}]})",
                              "config.json");
  JsonCursor root_{document_, "config.json"};
};

TEST_F(Cursor, ReadsWhatIsThere) {
  EXPECT_EQ(root_.at("n").integer(), 30);
  EXPECT_EQ(root_.at("n").unsigned_integer(30), 30U);
  EXPECT_EQ(root_.at("neg").integer(-1, -1), -1);
  EXPECT_EQ(root_.at("u").unsigned_integer(), 9223372036854775808U);
  EXPECT_EQ(root_.at("f").real(), 30.5);
  EXPECT_EQ(root_.at("n").real(), 30.0);
  EXPECT_TRUE(root_.at("t").boolean());
  EXPECT_EQ(root_.at("s").string(), "30");
  EXPECT_TRUE(root_.at("nil").is_null());
  EXPECT_TRUE(root_.has("n"));
  EXPECT_FALSE(root_.has("nil"));
  EXPECT_FALSE(root_.has("absent"));
  EXPECT_EQ(root_.at("list").array_size(), 2U);
  EXPECT_EQ(root_.at("list").at(1).at("a/b").pointer(), "/list/1/a~1b");
  EXPECT_EQ(root_.at("list").at(1).keys(), std::vector<std::string>{"a/b"});
}

TEST_F(Cursor, IntegerRefusesEveryOtherNumberAndKind) {  // catalogue item 56
  const auto refused = [&](const char* key, const char* found) {
    const std::string part = std::string("config.json: /") + key + ": found " + found + ", expected an integer";
    expect_error(ErrorCode::kInput, part, [&] { root_.at(key).integer(0, 1'000'000); });
    expect_error(ErrorCode::kInput, part, [&] { root_.at(key).unsigned_integer(1'000'000); });
  };
  refused("f", "30.5");
  refused("t", "true");
  refused("s", "\"30\"");
  refused("neg", "-1");
  refused("big", "8589934592");
  refused("u", "9223372036854775808");
  refused("huge", "1.8446744073709552e+19");
  refused("nil", "null");
  refused("list", "an array of 2 elements");
  expect_error(ErrorCode::kInput, "/u", [&] { root_.at("u").integer(); });
  expect_error(ErrorCode::kInput, "/huge", [&] { root_.at("huge").unsigned_integer(); });
}

TEST_F(Cursor, OtherGettersRefuseTheWrongKind) {
  expect_error(ErrorCode::kInput, "/s: found \"30\", expected a number", [&] { root_.at("s").real(); });
  expect_error(ErrorCode::kInput, "/t: found true, expected a number", [&] { root_.at("t").real(); });
  expect_error(ErrorCode::kInput, "/n: found 30, expected a string", [&] { root_.at("n").string(); });
  expect_error(ErrorCode::kInput, "/n: found 30, expected true or false", [&] { root_.at("n").boolean(); });
  expect_error(ErrorCode::kInput, "/absent: found nothing", [&] { root_.at("absent"); });
  expect_error(ErrorCode::kInput, "/list: found an array", [&] { root_.at("list").at("a"); });
  expect_error(ErrorCode::kInput, "/list: found an array", [&] { root_.at("list").has("a"); });
  expect_error(ErrorCode::kInput, "/list: found an array of 2 elements, expected at least 3",
               [&] { root_.at("list").at(2); });
  expect_error(ErrorCode::kInput, "config.json: found an object", [&] { root_.array_size(); });
  expect_error(ErrorCode::kInput, "/n: found 30, expected an object", [&] { root_.at("n").keys(); });
}

}  // namespace
}  // namespace kvs::test
