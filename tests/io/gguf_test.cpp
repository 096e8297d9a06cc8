// SPDX-License-Identifier: Apache-2.0
#include "io/gguf.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/io/bad_file.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;
using namespace test::gguf_file;

std::string with_key(std::string_view name, std::uint32_t type, std::string_view value) {
  return gguf({.keys = {key(name, type, value)}});
}
std::string with_tensor(const std::vector<std::uint64_t>& lengths, std::uint32_t type, std::uint64_t offset = 0) {
  return gguf({.tensors = {tensor("w", lengths, type, offset)}, .data = std::string(32, 'x')});
}

// ---- accepted files ----

TEST(Gguf, ReadsVersions2And3) {
  for (const std::uint32_t version : {2U, 3U}) EXPECT_TRUE(parse(gguf({.version = version})).tensors.empty());
}

TEST(Gguf, ReadsEveryKindOfValue) {
  const std::string file =
      gguf({.keys = {key("u8", kU8, "\xff"), key("i8", kI8, "\xff"), key("u16", kU16, "\xff\xff"),
                     key("i16", kI16, "\xff\xff"), key("u32", kU32, u32(0xffffffff)), key("i32", kI32, u32(0xffffffff)),
                     key("u64", kU64, u64(~0UL)), key("i64", kI64, u64(~0UL)), key("f32", kF32, raw(0.5F)),
                     key("f64", kF64, raw(0.1)), key("bool", kBool, "\1"), key("string", kString, text("a\xff"))}});
  const auto metadata = parse(file).metadata;
  EXPECT_EQ(metadata.at("u8"), GgufValue(std::uint64_t{255}));
  EXPECT_EQ(metadata.at("i8"), GgufValue(std::int64_t{-1}));
  EXPECT_EQ(metadata.at("u16"), GgufValue(std::uint64_t{65535}));
  EXPECT_EQ(metadata.at("i16"), GgufValue(std::int64_t{-1}));
  EXPECT_EQ(metadata.at("u32"), GgufValue(std::uint64_t{0xffffffff}));
  EXPECT_EQ(metadata.at("i32"), GgufValue(std::int64_t{-1}));
  EXPECT_EQ(metadata.at("u64"), GgufValue(~std::uint64_t{0}));
  EXPECT_EQ(metadata.at("i64"), GgufValue(std::int64_t{-1}));
  EXPECT_EQ(metadata.at("f32"), GgufValue(0.5));
  EXPECT_EQ(metadata.at("f64"), GgufValue(0.1));
  EXPECT_EQ(metadata.at("bool"), GgufValue(true));
  EXPECT_EQ(metadata.at("string"), GgufValue(std::string_view("a\xff")));
}

TEST(Gguf, ReadsArraysOfNumbersStringsAndBooleans) {
  const std::string file =
      gguf({.keys = {key("i32", kArray, array(kI32, 2, u32(1) + u32(0xfffffffe))),
                     key("u64", kArray, array(kU64, 1, u64((1UL << 63) - 1))), key("none", kArray, array(kF64, 0)),
                     key("f32", kArray, array(kF32, 1, raw(-0.25F))),
                     key("bool", kArray, array(kBool, 3, std::string("\0\1\0", 3))),
                     key("strings", kArray, array(kString, 2, text("") + text("ab")))}});
  const auto metadata = parse(file).metadata;
  const auto get = [&](const char* name) { return std::get<GgufArray>(metadata.at(name)); };
  EXPECT_EQ(get("i32"), GgufArray(std::vector<std::int64_t>{1, -2}));
  EXPECT_EQ(get("u64"), GgufArray(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max()}));
  EXPECT_EQ(get("none"), GgufArray(std::vector<double>{}));
  EXPECT_EQ(get("f32"), GgufArray(std::vector<double>{-0.25}));
  EXPECT_EQ(get("bool"), GgufArray(std::vector<bool>{false, true, false}));
  EXPECT_EQ(get("strings"), GgufArray(std::vector<std::string_view>{"", "ab"}));
}

TEST(Gguf, SortsTensorsByNameAndReversesTheirAxes) {
  const std::string data = raw(1.0F) + raw(2.0F) + std::string(24, '\0') + raw(3.0F);  // no padding after the last
  const std::string file =
      gguf({.tensors = {tensor("b", {1, 2}, kTypeF32, 0), tensor("a", {1}, kTypeF32, 32)}, .data = data});
  const auto tensors = parse(file).tensors;
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_THAT(tensors[1].shape, ElementsAre(2, 1));
  std::vector<float> values(2);
  read_rows(tensors[1], 0, 2, values);
  EXPECT_THAT(values, ElementsAre(1, 2));
}

TEST(Gguf, ObeysTheFilesAlignment) {
  const std::string data = raw(1.0F) + std::string(4, '\0') + raw(2.0F);
  const std::string file = gguf({.keys = {key("general.alignment", kU32, u32(8))},
                                 .tensors = {tensor("a", {1}, kTypeF32, 0), tensor("b", {1}, kTypeF32, 8)},
                                 .data = data,
                                 .alignment = 8});
  std::vector<float> value(1);
  read_rows(parse(file).tensors[1], 0, 1, value);
  EXPECT_EQ(value[0], 2.0F);
}

TEST(Gguf, EveryByteButZeroIsTrue) {
  EXPECT_EQ(parse(with_key("k", kBool, "\2")).metadata.at("k"), GgufValue(true));
  EXPECT_EQ(parse(with_key("k", kBool, std::string(1, '\0'))).metadata.at("k"), GgufValue(false));
}

// llama.cpp accepts it.
TEST(Gguf, BytesBehindTheLastTensorAreWarnedOf) {
  const std::string tensors = gguf({.tensors = {tensor("a", {8}, kTypeF32, 0)}, .data = std::string(32, 'x')});
  EXPECT_EQ(parse(tensors).warning, "");
  const std::size_t size = tensors.size();
  EXPECT_EQ(parse(tensors + "zz").warning, "m.gguf: bytes " + std::to_string(size) + ".." + std::to_string(size + 1) +
                                               " belong to no tensor, after the last tensor");
  EXPECT_EQ(parse(tensors + "zz").tensors.size(), 1U);
}

TEST(Gguf, ATypeItCannotDecodeFailsOnlyWhenRead) {
  const std::string file = gguf({.tensors = {tensor("w", {128}, kTypeQ10, 0)}, .data = std::string(18, 'x')});
  const auto tensors = parse(file).tensors;
  std::vector<float> out(128);
  test::expect_error(ErrorCode::kUnsupported, "tensor \"w\": found element type Q1_0",
                     [&] { read_rows(tensors[0], 0, 1, out); });
}

// ---- refused files ----

class BadGguf : public ::testing::TestWithParam<Bad> {};

TEST_P(BadGguf, IsRefusedWithThePlace) {
  const Bad& bad = GetParam();
  test::expect_error(bad.code, bad.message, [&] { parse(bad.bytes); });
  test::expect_error(bad.code, "m.gguf: ", [&] { parse(bad.bytes); });
}

const auto kCaseName = [](const auto& test_case) { return std::string(test_case.param.name); };
const std::string kHeader3 = "GGUF" + u32(3);
const std::string kZero = u64(0);

INSTANTIATE_TEST_SUITE_P(
    Header, BadGguf,
    ::testing::Values(
        Bad{"Magic", "\x1b[2J" + u32(3), "byte 0: magic: found \"\\x1b[2J\", expected \"GGUF\""},
        Bad{"Short", "GGU", "found \"GGU\""}, Bad{"OnlyMagic", "GGUF", "byte 4: version: found 0 bytes, need 4"},
        Bad{"Version0", gguf({.version = 0}), "byte 4: version: found 0, expected 2 or 3", ErrorCode::kUnsupported},
        Bad{"Version1", gguf({.version = 1}), "found 1, expected 2 or 3", ErrorCode::kUnsupported},
        Bad{"Version4", gguf({.version = 4}), "found 4, expected 2 or 3", ErrorCode::kUnsupported},
        Bad{"BigEndian", gguf({.version = 0x03000000}), "big-endian", ErrorCode::kUnsupported},
        Bad{"TensorCount", kHeader3 + u64(~0UL) + kZero, "byte 8: number of tensors: found 18446744073709551615"},
        Bad{"TensorCountOneTooMany", kHeader3 + u64(2) + kZero + std::string(50, '\0'), "byte 8: number of tensors"},
        Bad{"KeyCount", kHeader3 + kZero + u64(~0UL), "byte 16: number of metadata keys: found 18446744073709551615"}),
    kCaseName);

INSTANTIATE_TEST_SUITE_P(
    Metadata, BadGguf,
    ::testing::Values(
        Bad{"KeyLength", kHeader3 + kZero + u64(1) + u64(1UL << 63) + std::string(16, 'k'),
            "byte 24: metadata key: found string length 9223372036854775808, 16 bytes are left"},
        Bad{"EmptyKey", with_key("", kU8, "x"), "byte 24: metadata key: found an empty key"},
        Bad{"KeyNotUtf8", with_key("\xff", kU8, "x"), "found invalid UTF-8: \"\\xff\""},
        Bad{"LongKey", with_key(std::string(65536, 'k'), kU8, "x"), "found 65536 bytes, expected at most 65535"},
        Bad{"DuplicateKey", gguf({.keys = {key("k", kU8, "x"), key("k", kU8, "x")}}),
            "byte 38: key \"k\": duplicate key"},
        Bad{"StringLength", with_key("k", kString, u64(1UL << 63)), "byte 37: key \"k\": found string length"},
        Bad{"CutValue", (kHeader3 + kZero + u64(1) + key("k", kU64, "1234")),
            "byte 37: key \"k\": found 4 bytes, need 8"},
        Bad{"Type13", with_key("k", 13, "x"), "byte 33: key \"k\": found value type 13"},
        Bad{"Type2To31", with_key("k", 1U << 31, "x"), "found value type 2147483648"},
        Bad{"ArrayOfArrays", with_key("k", kArray, array(kArray, 1, array(kU8, 1, "x"))), "found an array of arrays"},
        Bad{"ArrayType", with_key("k", kArray, array(99, 1)), "found value type 99"},
        Bad{"ArrayCount", with_key("k", kArray, array(kU64, 1UL << 61)), "array length: found 2305843009213693952"},
        Bad{"ArrayCountBeyondTheFile", with_key("k", kArray, array(kU64, 5)), "array length: found 5"},
        Bad{"ArrayOfStrings", with_key("k", kArray, array(kString, 1, u64(~0UL))), "key \"k\": found string length"},
        Bad{"ArrayU64", with_key("k", kArray, array(kU64, 1, u64(1UL << 63))), "expected below 2^63"},
        Bad{"Alignment0", with_key("general.alignment", kU32, u32(0)), "found 0, expected a power of two"},
        Bad{"Alignment24", with_key("general.alignment", kU32, u32(24)), "found 24, expected a power of two"},
        Bad{"AlignmentSigned", with_key("general.alignment", kI32, u32(32)), "expected a UINT32"},
        Bad{"Alignment2To31", with_key("general.alignment", kU32, u32(1U << 31)), "up to 65536"}),
    kCaseName);

std::string two_tensors(std::uint64_t first, std::uint64_t second, std::size_t bytes) {
  return gguf({.tensors = {tensor("a", {8}, kTypeF32, first), tensor("b", {8}, kTypeF32, second)},
               .data = std::string(bytes, 'x')});
}
std::string named(std::string_view name) { return gguf({.tensors = {tensor(name, {1}, kTypeF32, 0)}, .data = "1234"}); }

INSTANTIATE_TEST_SUITE_P(
    Tensors, BadGguf,
    ::testing::Values(
        Bad{"Axes0", with_tensor({}, kTypeF32), "tensor \"w\": found 0 axes"},
        Bad{"Axes5", with_tensor({1, 1, 1, 1, 1}, kTypeF32), "tensor \"w\": found 5 axes, expected 1 to 4"},
        Bad{"AxesMost", kHeader3 + u64(1) + kZero + text("w") + u32(~0U) + std::string(64, '\0'),
            "found 4294967295 axes"},
        Bad{"Length0", with_tensor({8, 0}, kTypeF32), "byte 45: tensor \"w\": found an axis of length 0"},
        Bad{"Length2To63", with_tensor({1UL << 63}, kTypeF32), "found an axis of length 9223372036854775808"},
        Bad{"CountWrapsToZero", with_tensor({1UL << 32, 1UL << 32}, kTypeF32), "tensor \"w\": overflow"},
        Bad{"SizeOverflow", with_tensor({1UL << 62, 2}, kTypeF32), "tensor \"w\": overflow"},
        // 2^64 numbers: the bytes of their 2^59 blocks would fit in 64 bits, but the count does not.
        Bad{"CountOverflow", with_tensor({32, 1UL << 59}, kTypeQ41), "tensor \"w\": overflow"},
        Bad{"Type99", with_tensor({8}, 99), "tensor \"w\": found type 99, unknown or removed"},
        Bad{"TypeRemoved", with_tensor({32}, 4), "found type 4, unknown or removed"},
        Bad{"TypeMost", with_tensor({32}, ~0U), "found type 4294967295"},
        Bad{"RowOf33", with_tensor({33}, kTypeQ41), "found rows of 33 numbers, expected a multiple of 32 for Q4_1"},
        Bad{"RowOf128", with_tensor({128}, kTypeQ4K), "found rows of 128 numbers, expected a multiple of 256 for Q4_K"},
        Bad{"NameOf64", named(std::string(64, 'n')), "byte 24: tensor name: found 64 bytes, expected 1 to 63"},
        Bad{"NameEmpty", named(""), "tensor name: found 0 bytes"},
        Bad{"NameWithNul", named(std::string_view("a\0b", 3)), "found \"a\\x00b\", expected UTF-8 without NUL"},
        Bad{"NameNotUtf8", named("a\xff"), "found \"a\\xff\", expected UTF-8"},
        Bad{"NameTwice",
            gguf({.tensors = {tensor("w", {8}, kTypeF32, 0), tensor("w", {8}, kTypeF32, 32)},
                  .data = std::string(64, 'x')}),
            "duplicate name \"w\""},
        Bad{"CutEntry", kHeader3 + u64(1) + kZero + text("w") + u32(2) + u64(1) + u64(1) + u32(kTypeF32),
            "byte 57: tensor \"w\": found 0 bytes, need 8"}),
    kCaseName);

INSTANTIATE_TEST_SUITE_P(
    Data, BadGguf,
    ::testing::Values(
        Bad{"NotAligned", with_tensor({4}, kTypeF32, 16), "tensor \"w\": found offset 16, not aligned to 32"},
        Bad{"BeyondTheFile", with_tensor({8}, kTypeF32, 1UL << 40), "tensor \"w\": ends at data byte 1099511627808"},
        Bad{"OffsetWraps", with_tensor({16}, kTypeF32, ~0UL - 31), "tensor \"w\": overflow: offset and size"},
        Bad{"PaddingWraps", with_tensor({7}, kTypeF32, ~0UL - 31), "tensor \"w\": overflow: offset and size"},
        Bad{"SameRange", two_tensors(0, 0, 64), "tensor \"b\": offset 0 overlaps tensor \"a\""},
        Bad{"Overlap",
            gguf({.tensors = {tensor("a", {9}, kTypeF32, 0), tensor("b", {8}, kTypeF32, 32)},
                  .data = std::string(64, 'x')}),
            "tensor \"b\": offset 32 overlaps tensor \"a\""},
        Bad{"Gap", two_tensors(0, 64, 96),
            "data: bytes 128..159 belong to no tensor"},  // the data start behind the entries, 24 + 2 · 33 = 90
        Bad{"GapAtTheStart", gguf({.tensors = {tensor("w", {8}, kTypeF32, 32)}, .data = std::string(64, 'x')}),
            "data: bytes 64..95 belong to no tensor"},  // the entry ends at 24 + 33 = 57
        Bad{"OneByteShort", two_tensors(32, 0, 63), "tensor \"a\": ends at data byte 64"},
        Bad{"NoData", two_tensors(0, 32, 0), "tensor \"a\": ends at data byte 32"}),
    kCaseName);

// Not among the parameters: parameters are made whenever the program starts, and these files are large.
TEST(Gguf, CountsAboveTheLimitsAreRefusedWhereTheFileHoldsAsMuch) {
  constexpr std::size_t kMaxNumbers = 1UL << 25;
  const auto refused = [](const std::string& bytes, std::string_view message) {
    test::expect_error(ErrorCode::kInput, message, [&] { parse(bytes); });
  };
  refused(kHeader3 + u64((1UL << 20) + 1) + kZero + std::string(33UL << 20 | 64, '\0'), "expected at most 1048576");
  refused(with_key("k", kArray, array(kU8, kMaxNumbers + 1, std::string(kMaxNumbers + 1, '\0'))),
          "expected at most 33554432");
  refused(gguf({.keys = {key("j", kArray, array(kU8, kMaxNumbers, std::string(kMaxNumbers, '\0'))),
                         key("k", kArray, array(kU8, 1, "x"))}}),
          "key \"k\", array length: found 1, expected at most 0");
}

TEST(Gguf, EveryTruncationOfAGoodFileIsRefused) {
  const std::string file = gguf({.keys = {key("s", kString, text("abc")), key("a", kArray, array(kU16, 2, "abcd"))},
                                 .tensors = {tensor("w", {32}, kTypeQ41, 0)},
                                 .data = std::string(20, 'x')});
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_THROW(parse(std::string_view(file).substr(0, size)), Error) << size;
  EXPECT_EQ(parse(file).tensors.size(), 1U);
}

// ---- the file and its getters ----

class GgufGetters : public ::testing::Test {
 protected:
  void expect_refused(std::string_view message, const std::function<void()>& act) {
    test::expect_error(ErrorCode::kInput, message, act);
  }

  test::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.write(
      "m.gguf",
      gguf({.keys = {key("u", kU32, u32(7)), key("i", kI32, u32(7)), key("minus", kI32, u32(~0U)),
                     key("f", kF32, raw(0.5F)), key("nan", kF32, raw(std::numeric_limits<float>::quiet_NaN())),
                     key("b", kBool, std::string(1, '\0')), key("s", kString, text("llama")),
                     key("a", kArray, array(kU8, 2, "\1\2"))}}));
  std::unique_ptr<GgufFile> file_ = GgufFile::open(path_);
};

TEST_F(GgufGetters, GiveTypedValues) {
  EXPECT_EQ(file_->get_unsigned("u", 7), 7U);
  EXPECT_EQ(file_->get_unsigned("i", ~0UL), 7U);  // writers differ in signedness
  EXPECT_EQ(file_->get_real("f"), 0.5);
  EXPECT_FALSE(file_->get_boolean("b"));
  EXPECT_EQ(file_->get_string("s"), "llama");
  EXPECT_EQ(file_->get_array("a"), GgufArray(std::vector<std::int64_t>{1, 2}));
  EXPECT_TRUE(file_->has("u"));
  EXPECT_FALSE(file_->has("v"));
}

TEST_F(GgufGetters, NameFileAndKeyOfWhatDoesNotFit) {
  expect_refused("m.gguf: key \"v\": found nothing, expected an integer from 0 to 9",
                 [&] { file_->get_unsigned("v", 9); });
  expect_refused("key \"u\": found 7, expected an integer from 0 to 6", [&] { file_->get_unsigned("u", 6); });
  expect_refused("key \"i\": found 7, expected an integer from 0 to 6", [&] { file_->get_unsigned("i", 6); });
  expect_refused("key \"minus\": found -1", [&] { file_->get_unsigned("minus", ~0UL); });
  expect_refused("key \"f\": found the real number", [&] { file_->get_unsigned("f", 9); });
  expect_refused("key \"u\": found 7, expected a real number", [&] { file_->get_real("u"); });
  expect_refused("key \"nan\"", [&] { file_->get_real("nan"); });
  expect_refused("key \"s\": found \"llama\", expected a boolean", [&] { file_->get_boolean("s"); });
  expect_refused("key \"b\": found false, expected a string", [&] { file_->get_string("b"); });
  expect_refused("key \"a\": found an array, expected a string", [&] { file_->get_string("a"); });
  expect_refused("key \"s\": found \"llama\", expected an array", [&] { file_->get_array("s"); });
}

TEST_F(GgufGetters, NoticeAFileThatChanged) {
  file_->check_unchanged();
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) + 1);
  expect_refused("m.gguf", [&] { file_->check_unchanged(); });
}

}  // namespace
}  // namespace kvs
