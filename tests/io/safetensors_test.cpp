// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/dtype.h"
#include "io/digest.h"
#include "io/safetensors_parse.h"
#include "io/tensor_archive.h"
#include "tests/io/bad_file.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using test::values_of;
using ::testing::ElementsAre;

std::string little_endian(std::uint64_t number) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &number, 8);
  return bytes;
}

/// A file with this header text and this data.
std::string file_bytes(std::string_view header, std::string_view data = "") {
  return little_endian(header.size()) + std::string(header) + std::string(data);
}

/// Like the function above, with a header padded so that the data start at byte 128.
std::string data_at_128(std::string_view header, std::string_view data) {
  std::string padded(header);
  padded.resize(120, ' ');
  return file_bytes(padded, data);
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

std::vector<StoredTensor> stored(std::string_view bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "m.safetensors");
}

/// One tensor "w" with the given rest of its description.
std::string one(std::string_view members) { return R"({"w":{)" + std::string(members) + "}}"; }

// ---- accepted files ----

struct PlainType {
  const char* name;
  std::string bytes;  // of 1.5, -2 and 2^-14, which every type holds exactly
};

class SafetensorsType : public ::testing::TestWithParam<PlainType> {};

TEST_P(SafetensorsType, WidensToF32AtAnOddAddress) {
  const auto& [name, data] = GetParam();
  const std::string size = std::to_string(data.size());
  std::string header = one(std::string(R"("dtype":")") + name + R"(","shape":[1,3],"data_offsets":[0,)" + size + "]");
  if (header.size() % 2 == 0) header += ' ';
  const std::string file = file_bytes(header, data);
  const auto tensors = stored(file);
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors[0].type_name, name);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensors[0].bytes.data()) % 2, 1U);
  EXPECT_THAT(values_of(tensors[0]), ElementsAre(1.5F, -2.0F, 0x1p-14F));
}

INSTANTIATE_TEST_SUITE_P(All, SafetensorsType,
                         ::testing::Values(PlainType{"F32", bytes_of<float>({1.5F, -2.0F, 0x1p-14F})},
                                           PlainType{"F64", bytes_of<double>({1.5, -2.0, 0x1p-14})},
                                           PlainType{"F16", bytes_of<std::uint16_t>({0x3e00, 0xc000, 0x0400})},
                                           PlainType{"BF16", bytes_of<std::uint16_t>({0x3fc0, 0xc000, 0x3880})}),
                         [](const auto& test_case) { return std::string(test_case.param.name); });

TEST(Safetensors, EveryHalfPrecisionPatternWidensToItsValue) {
  std::string data;
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    data += bytes_of<std::uint16_t>({static_cast<std::uint16_t>(bits)});
  const std::string file = file_bytes(one(R"("dtype":"F16","shape":[65536],"data_offsets":[0,131072])"), data);
  const auto values = values_of(stored(file)[0]);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = bits & 1023;
    const double magnitude =  // IEEE 754-2019, 3.4: e = 31 is infinity or NaN, e = 0 subnormal
        exponent == 31  ? (fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan(""))
        : exponent == 0 ? std::ldexp(fraction, -24)
                        : std::ldexp(1024 + fraction, exponent - 25);
    if (std::isnan(magnitude))
      ASSERT_TRUE(std::isnan(values[bits])) << bits;
    else
      ASSERT_EQ(values[bits], bits >> 15 != 0 ? -magnitude : magnitude) << bits;
    ASSERT_EQ(std::signbit(values[bits]), bits >> 15 != 0) << bits;
  }
}

TEST(Safetensors, SortsTensorsByNameAndKeepsShapes) {
  const std::string file = file_bytes(
      R"( {"b":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"__metadata__":{"format":"pt"},)"
      R"("a":{"shape":[2,1,1],"data_offsets":[4,12],"dtype":"F32"},"e":{"dtype":"F32","shape":[0,9],"data_offsets":[4,4]}})"
      "\t\r\n ",
      bytes_of<float>({1, 2, 3}));
  const auto tensors = stored(file);
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_THAT(tensors[0].shape, ElementsAre(2, 1, 1));
  EXPECT_THAT(values_of(tensors[0]), ElementsAre(2, 3));
  EXPECT_THAT(values_of(tensors[1]), ElementsAre(1));  // rank 0: one number
  EXPECT_THAT(values_of(tensors[2]), ElementsAre());   // 0 rows
}

// safetensors 0.8.0 accepts both.
TEST(Safetensors, PassesOverUnknownMembersAndNullAsMetadata) {
  const std::string file =
      file_bytes(R"({"__metadata__":null,"w":{"dtype":"F32","x":[1],"shape":[1],"data_offsets":[0,4],"y":null}})",
                 bytes_of<float>({7}));
  ASSERT_EQ(stored(file).size(), 1U);
  EXPECT_THAT(values_of(stored(file)[0]), ElementsAre(7));
}

TEST(Safetensors, KeepsHostileNamesAsOpaqueKeys) {
  const std::string name = R"(../../etc/passwd\u001b[2J)";
  const std::string file = file_bytes("{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "abcd");
  EXPECT_EQ(stored(file)[0].name, "../../etc/passwd\x1b[2J");
  test::expect_error(ErrorCode::kInput, R"("../../etc/passwd\x1b[2J": ends at byte)",
                     [&] { stored(std::string_view(file).substr(0, file.size() - 1)); });
  const std::string longest(10'000'000, 'n');
  const std::string cut = file_bytes("{\"" + longest + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "abc");
  try {
    stored(cut);
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_LT(std::strlen(error.what()), 400U);
  }
}

TEST(Safetensors, ATypeItCannotDecodeFailsOnlyWhenRead) {
  const std::string file = file_bytes(
      R"({"w":{"dtype":"F8_E5M2","shape":[3],"data_offsets":[0,3]},"x":{"dtype":"F4","shape":[6],"data_offsets":[3,6]}})",
      "abcdef");
  const auto tensors = stored(file);
  std::vector<float> out(3);
  test::expect_error(ErrorCode::kUnsupported, R"(tensor "w": found element type F8_E5M2)",
                     [&] { read_rows(tensors[0], 0, 1, out); });
  EXPECT_EQ(tensors[1].bytes.size(), 3U);
}

// ---- refused files ----

class BadSafetensors : public ::testing::TestWithParam<Bad> {};

TEST_P(BadSafetensors, IsRefusedWithThePlace) {
  const Bad& bad = GetParam();
  test::expect_error(bad.code, bad.message, [&] { stored(bad.bytes); });
  test::expect_error(bad.code, "m.safetensors: ", [&] { stored(bad.bytes); });
}

std::string repeated_range(int names) {
  std::string header = "{";
  for (int i = 0; i < names; ++i)
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  return file_bytes(header + "}", "abcd");
}

std::string deep(std::size_t levels) {
  return file_bytes(R"({"w":{"shape":)" + std::string(levels, '[') + std::string(levels, ']') + "}}");
}

const std::string kFloat = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";

INSTANTIATE_TEST_SUITE_P(
    Prefix, BadSafetensors,
    ::testing::Values(
        Bad{"Short", "abcdefg", "byte 0: found 7 bytes, need 8"},
        Bad{"HeaderLength2To63", little_endian(1UL << 63) + "{}",
            "byte 0: found header length 9223372036854775808, expected at most 100000000"},
        Bad{"HeaderLengthJustAboveTheLimit", little_endian(100000001) + "{}", "expected at most 100000000"},
        Bad{"HeaderBeyondTheFile", little_endian(1000) + std::string(112, ' '),
            "byte 0: found header length 1000, but 112 bytes follow it"},
        Bad{"Zip", std::string("PK\3\4\24\0\0\0\10\0\10\0", 12), "only safetensors and GGUF", ErrorCode::kUnsupported},
        Bad{"Pickle", "\x80\x02}q\x01X\x06weight", "only safetensors and GGUF", ErrorCode::kUnsupported}),
    [](const auto& test_case) { return std::string(test_case.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Header, BadSafetensors,
    ::testing::Values(
        Bad{"Empty", file_bytes(""), "header at byte 8"}, Bad{"List", file_bytes("[]"), "header at byte 8: found []"},
        Bad{"Text", file_bytes("\"x\""), "header at byte 8: found \"x\""},
        Bad{"Unclosed", file_bytes("{"), "header at byte 8: line 1, column 2"},
        Bad{"NotUtf8", file_bytes("{\"\xff\":1}"), "byte 10: found invalid UTF-8"},
        Bad{"ByteOrderMark", file_bytes("\xef\xbb\xbf{}"), "byte order mark"},
        Bad{"NulPadding", file_bytes(std::string_view("{}\0\0", 4)), "NUL byte"},
        Bad{"TwoObjects", file_bytes("{}{}"), "column 3"}, Bad{"Deep", deep(100000), "at most 4 levels"},
        Bad{"DuplicateName", file_bytes("{\"w\":{" + kFloat + "},\"w\":{" + kFloat + "}}", "abcd"),
            "duplicate key \"w\""},
        Bad{"DuplicateNameByEscape", file_bytes("{\"a\":{" + kFloat + "},\"\\u0061\":{" + kFloat + "}}", "abcd"),
            "duplicate key \"a\""},
        Bad{"MetadataNumber", file_bytes(R"({"__metadata__":{"a":1}})"),
            "__metadata__: \"a\": found 1, expected a string"},
        Bad{"MetadataList", file_bytes(R"({"__metadata__":[]})"),
            "__metadata__: found [], expected an object of strings"},
        Bad{"TensorIsNoObject", file_bytes(R"({"w":7})"), "tensor \"w\": found 7, expected an object"},
        Bad{"NoDtype", file_bytes(one(R"("shape":[1],"data_offsets":[0,4])"), "abcd"), "tensor \"w\": found no dtype"},
        Bad{"NoShape", file_bytes(one(R"("dtype":"F32","data_offsets":[0,4])"), "abcd"), "found no shape"},
        Bad{"NoOffsets", file_bytes(one(R"("dtype":"F32","shape":[1])"), "abcd"), "found no data_offsets"},
        Bad{"LowerCaseDtype", file_bytes(one(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])"), "abcd"),
            "unknown dtype \"f32\""}),
    [](const auto& test_case) { return std::string(test_case.param.name); });

std::string offsets(std::string_view text) {
  return data_at_128(one(R"("dtype":"F32","shape":[1],"data_offsets":)" + std::string(text)), "abcd");
}
std::string shaped(std::string_view dtype, std::string_view shape, std::string_view end = "4") {
  return file_bytes(one(R"("dtype":")" + std::string(dtype) + R"(","shape":)" + std::string(shape) +
                        R"(,"data_offsets":[0,)" + std::string(end) + "]"),
                    "abcd");
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, BadSafetensors,
    ::testing::Values(
        Bad{"OffsetsReversed", offsets("[4,0]"), "tensor \"w\": data_offsets: found [4, 0]"},
        Bad{"OffsetNegative", offsets("[-4,0]"), "tensor \"w\": data_offsets: found -4, expected an integer"},
        Bad{"OffsetReal", offsets("[0,4.0]"), "found 4.0, expected an integer"},
        Bad{"OffsetTrue", offsets("[false,4]"), "found false, expected an integer"},
        Bad{"ThreeOffsets", offsets("[0,2,4]"), "tensor \"w\": found \"data_offsets\": [0,2,4]"},
        Bad{"OffsetAbove2To64", offsets("[0,18446744073709551616]"), "expected an integer below 2^64"},
        Bad{"OffsetAtTheTop", offsets("[18446744073709551612,18446744073709551615]"), "data_offsets give 3"},
        Bad{"OffsetFarBeyondTheFile", offsets("[9223372036854775808,9223372036854775812]"),
            "data: bytes 128..9223372036854775935 belong to no tensor"},
        Bad{"ShapeOverflow", shaped("F32", "[2,18446744073709551614]"), "tensor \"w\": overflow"},
        Bad{"ItemSizeOverflow", shaped("F32", "[2,9223372036854775807]"), "tensor \"w\": overflow"},
        Bad{"ShapeNegative", shaped("F32", "[-1]"), "tensor \"w\": shape: found -1"},
        Bad{"ShapeReal", shaped("F32", "[1.5]"), "tensor \"w\": shape: found 1.5"},
        Bad{"ShapeNumber", shaped("F32", "1"), "tensor \"w\": found \"shape\": 1"},
        Bad{"ShapeLargerThanSpan", shaped("F32", "[2]"), "shape and dtype need 8 bytes, data_offsets give 4"},
        Bad{"ShapeSmallerThanSpan", shaped("F16", "[1]"), "shape and dtype need 2 bytes, data_offsets give 4"},
        Bad{"HalfAByte", shaped("F4", "[7]"), "found 7 numbers of dtype F4"},
        Bad{"Overlap",
            file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],)"
                       R"("data_offsets":[4,12]}})",
                       "abcdefghijkl"),
            "tensor \"b\": overlaps tensor \"a\""},
        Bad{"ManyOnOneRange", repeated_range(100000), "overlaps tensor"},
        Bad{"Hole",
            data_at_128(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],)"
                        R"("data_offsets":[3,4]}})",
                        "abcd"),
            "data: bytes 129..130 belong to no tensor"},
        Bad{"HoleAtTheStart", data_at_128(one(R"("dtype":"U8","shape":[1],"data_offsets":[2,3])"), "abc"),
            "data: bytes 128..129 belong to no tensor"},
        Bad{"BytesBehindTheLast", data_at_128(one(kFloat), "abcdPK"), "data: bytes 132..133 belong to no tensor"},
        Bad{"CutByOneByte", data_at_128(one(kFloat), "abc"), "tensor \"w\": ends at byte 132 of a file of 131 bytes"},
        Bad{"NoData", data_at_128(one(kFloat), ""), "tensor \"w\": ends at byte 132 of a file of 128 bytes"}),
    [](const auto& test_case) { return std::string(test_case.param.name); });

TEST(Safetensors, EveryTruncationOfAGoodFileIsRefused) {
  const std::string file = test::safetensors_bytes(std::vector<test::NamedTensor>{{"a", {2}, {1, 2}}, {"b", {1}, {3}}});
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_THROW(stored(std::string_view(file).substr(0, size)), Error) << size;
  EXPECT_EQ(stored(file).size(), 2U);
}

TEST(OpenSafetensors, RefusesAMissingOrEmptyFile) {
  const test::TemporaryDirectory directory;
  test::expect_error(ErrorCode::kInput, "m.safetensors", [&] { open_safetensors(directory / "m.safetensors"); });
  const auto empty = directory.write("empty.safetensors", "");
  test::expect_error(ErrorCode::kInput, "empty", [&] { open_safetensors(empty); });
}

// ---- rows ----

TEST(ReadRows, GivesAnyRangeOfRows) {
  const std::string file =
      file_bytes(one(R"("dtype":"F32","shape":[3,2],"data_offsets":[0,24])"), bytes_of<float>({1, 2, 3, 4, 5, 6}));
  const auto tensors = stored(file);
  std::vector<float> out(4);
  read_rows(tensors[0], 1, 2, out);
  EXPECT_THAT(out, ElementsAre(3, 4, 5, 6));
  read_rows(tensors[0], 3, 0, {});
}

TEST(ReadRows, RefusesABadRange) {
  const std::string file =
      file_bytes(one(R"("dtype":"F32","shape":[3,2],"data_offsets":[0,24])"), bytes_of<float>({1, 2, 3, 4, 5, 6}));
  const auto tensors = stored(file);
  std::vector<float> out(4);
  test::expect_error(ErrorCode::kInternal, "rows 2 + 2 of 3", [&] { read_rows(tensors[0], 2, 2, out); });
  test::expect_error(ErrorCode::kInternal, "rows 0", [&] { read_rows(tensors[0], 0, 1, out); });
  test::expect_error(ErrorCode::kInternal, "rows 1", [&] { read_rows(tensors[0], 1, ~0UL, out); });
}

// ---- writer ----

TEST(SafetensorsWriter, WritesThisVeryFile) {
  const std::vector<test::NamedTensor> tensors{{"b", {1, 2}, {2.0F, 3.0F}}, {"a", {1}, {1.0F}}};
  const std::string header = R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
  std::string padded = header;
  while (padded.size() % 8 != 0) padded += ' ';
  EXPECT_EQ(test::safetensors_bytes(tensors, {{"k", "v"}}), file_bytes(padded, bytes_of<float>({2, 3, 1})));
}

TEST(SafetensorsWriter, RefusesWhatNobodyCouldRead) {
  const auto write = [](test::NamedTensor tensor) { test::safetensors_bytes(std::vector{std::move(tensor)}); };
  test::expect_error(ErrorCode::kData, "tensor \"w\": value 1: found NaN", [&] { write({"w", {2}, {1.0F, NAN}}); });
  test::expect_error(ErrorCode::kData, "value 0: found infinity", [&] { write({"w", {1}, {INFINITY}}); });
  test::expect_error(ErrorCode::kData, "UTF-8", [&] { write({"\xff", {1}, {1.0F}}); });
  test::expect_error(ErrorCode::kInternal, "do not fill", [&] { write({"w", {2}, {1.0F}}); });
  test::expect_error(ErrorCode::kInternal, "63 bits", [&] { write({"w", {1UL << 40, 1UL << 40}, {}}); });
  test::expect_error(ErrorCode::kInternal, "taken", [&] { write({"__metadata__", {1}, {1.0F}}); });
  const std::vector<test::NamedTensor> twice{{"w", {1}, {1.0F}}, {"w", {1}, {1.0F}}};
  test::expect_error(ErrorCode::kInternal, "taken", [&] { test::safetensors_bytes(twice); });
}

/// [6, 5] of 0 … 29, and a run of rows that a writer asked for.
OutputTensor counted(std::string name, DType type, std::vector<std::size_t>& asked) {
  return {std::move(name), type, {2, 3, 5}, [&asked](std::size_t first, std::size_t count, std::span<float> out) {
            asked.push_back(count);
            for (std::size_t n = 0; n < out.size(); ++n) out[n] = static_cast<float>(first * 5 + n);
          }};
}

TEST(SafetensorsWriter, RoundsToTheTypeAndIsReadBack) {
  const test::TemporaryDirectory directory;
  std::vector<std::size_t> asked;
  const std::vector<OutputTensor> tensors{counted("bf16", DType::kBF16, asked), counted("f16", DType::kF16, asked),
                                          held_tensor("scalar", {}, {0.5F})};
  const auto file = directory.write("m.safetensors", "");
  std::uint64_t bytes = 0;
  write_safetensors(file, tensors, {}, [&](std::uint64_t more) { bytes += more; });
  EXPECT_EQ(bytes, 30U * 2 + 30U * 2 + 4U);
  EXPECT_THAT(asked, ElementsAre(6U, 6U));
  const auto archive = open_safetensors(file);
  for (const char* name : {"bf16", "f16"}) {
    const StoredTensor* tensor = archive->find(name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_THAT(tensor->shape, ElementsAre(2U, 3U, 5U));
    std::vector<float> values(30);
    read_rows(*tensor, 0, 6, values);
    EXPECT_EQ(values[29], 29.0F);
  }
}

TEST(SafetensorsWriter, RefusesWhatAHalfCannotHold) {
  const test::TemporaryDirectory directory;
  const std::vector<OutputTensor> tensors{held_tensor("w", {2}, {1.0F, 65520.0F}, DType::kF16)};
  test::expect_error(ErrorCode::kData, "tensor \"w\": value 1: found 65520.000000, beyond f16",
                     [&] { write_safetensors(directory.write("f", ""), tensors, {}); });
}

TEST(SafetensorsWriter, SplitsAModelInShards) {
  const test::TemporaryDirectory directory;
  const std::vector<OutputTensor> tensors{held_tensor("c", {2}, {1, 2}), held_tensor("a", {2}, {3, 4}),
                                          held_tensor("b", {5}, {5, 6, 7, 8, 9}), held_tensor("d", {1}, {10})};
  write_safetensors_shards(directory.path(), tensors, {}, 16);  // c and a; b, which is larger than a shard; d
  EXPECT_THAT(directory.names(), ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                             "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  const auto archive = open_safetensors(directory / "model.safetensors.index.json");
  EXPECT_TRUE(archive->warnings().empty());
  EXPECT_EQ(archive->tensors().size(), 4U);
  EXPECT_EQ(archive->file_of(*archive->find("a")).filename(), "model-00001-of-00003.safetensors");
  std::vector<float> values(5);
  read_rows(*archive->find("b"), 0, 1, values);
  EXPECT_THAT(values, ElementsAre(5, 6, 7, 8, 9));
}

// ---- digest ----

TEST(ModelDigest, HashesNamesTypesShapesAndBytesInOrderOfNames) {
  const test::TemporaryDirectory directory;
  const auto path =
      directory.write("m.safetensors", file_bytes(R"({"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                                                  R"("a":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}})",
                                                  "01234567xy"));
  const auto archive = open_safetensors(path);
  const auto n = little_endian;
  const std::string a = n(1) + "a" + n(4) + "BF16" + n(0) + n(2) + "xy";
  const std::string b = n(1) + "b" + n(3) + "F32" + n(2) + n(1) + n(2) + n(8) + "01234567";
  EXPECT_EQ(model_digest(*archive, std::vector<std::string>{"b", "a", "b"}), sha256_of(a + b));
  EXPECT_EQ(model_digest(*archive, std::vector<std::string>{"b"}), sha256_of(b));
  test::expect_error(ErrorCode::kInput, "tensor \"c\"", [&] { model_digest(*archive, std::vector<std::string>{"c"}); });
}

}  // namespace
}  // namespace kvs
