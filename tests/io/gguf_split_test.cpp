// SPDX-License-Identifier: Apache-2.0
#include "io/gguf_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "io/gguf.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using namespace test::gguf_file;

std::string u16(std::uint64_t number) { return raw(static_cast<std::uint16_t>(number)); }

std::vector<std::string> split_keys(std::uint64_t number, std::uint64_t count, std::uint64_t tensors) {
  return {key("split.no", kU16, u16(number)), key("split.count", kU16, u16(count)),
          key("split.tensors.count", kI32, u32(tensors))};
}

/// A model of three tensors, whole and in three parts as llama.cpp writes them: the first has only metadata.
class SplitGguf : public ::testing::Test {
 protected:
  SplitGguf() {
    directory_.write("whole.gguf", gguf({.keys = {name_},
                                         .tensors = {tensor("b", {2, 4}, kTypeF32, 0), tensor("a", {8}, kTypeF32, 32),
                                                     tensor("c", {32}, kTypeQ41, 64)},
                                         .data = numbers('b') + numbers('a') + block_}));
    write_part(0, {name_}, {}, "");
    write_part(1, {name_}, {tensor("b", {2, 4}, kTypeF32, 0), tensor("a", {8}, kTypeF32, 32)},
               numbers('b') + numbers('a'));
    write_part(2, {}, {tensor("c", {32}, kTypeQ41, 0)}, block_);
  }

  static std::string numbers(char character) { return std::string(32, character); }
  static std::string part_name(std::size_t number) { return "m-0000" + std::to_string(number + 1) + "-of-00003.gguf"; }
  std::filesystem::path part(std::size_t number) const { return directory_ / part_name(number); }

  void write_part(std::size_t place, std::vector<std::string> keys, const std::vector<std::string>& tensors,
                  const std::string& data, std::array<std::uint64_t, 3> split) const {
    for (std::string& split_key : split_keys(split[0], split[1], split[2])) keys.push_back(std::move(split_key));
    directory_.write(part_name(place), gguf({.keys = keys, .tensors = tensors, .data = data}));
  }
  void write_part(std::size_t place, std::vector<std::string> keys, const std::vector<std::string>& tensors,
                  const std::string& data) const {
    write_part(place, std::move(keys), tensors, data, {place, 3, 3});
  }
  void expect_refused(std::string_view file, std::string_view message) const {
    const std::string whole = (directory_ / file).native() + std::string(message);
    test::expect_error(ErrorCode::kInput, whole, [&] { GgufFile::open(part(1)); });
  }

  const std::string name_ = key("general.name", kString, text("tiny")), block_ = std::string(20, 'q');
  test::TemporaryDirectory directory_;
};

TEST_F(SplitGguf, OpensFromAnyPartWithTheTensorsAndKeysOfTheWhole) {
  const auto whole = GgufFile::open(directory_ / "whole.gguf");
  for (std::size_t number = 0; number < 3; ++number) {
    const auto file = GgufFile::open(part(number));
    ASSERT_EQ(file->tensors().size(), 3U);
    for (std::size_t n = 0; n < 3; ++n) {
      const StoredTensor &found = file->tensors()[n], &expected = whole->tensors()[n];
      EXPECT_EQ(found.name, expected.name);
      EXPECT_EQ(found.shape, expected.shape);
      EXPECT_TRUE(std::ranges::equal(found.bytes, expected.bytes));
      EXPECT_EQ(file->file_of(found), part(found.name == "c" ? 2 : 1));
    }
    EXPECT_EQ(file->get_string("general.name"), "tiny");
    EXPECT_EQ(file->path(), part(0));
    file->check_unchanged();
  }
}

TEST_F(SplitGguf, HasTheDigestOfTheWholeFile) {
  const std::vector<std::string> names{"a", "b", "c"};
  EXPECT_EQ(model_digest(*GgufFile::open(part(2)), names),
            model_digest(*GgufFile::open(directory_ / "whole.gguf"), names));
}

TEST_F(SplitGguf, NoticesAPartThatChanged) {
  const auto file = GgufFile::open(part(0));
  std::filesystem::resize_file(part(2), std::filesystem::file_size(part(2)) + 1);
  test::expect_error(ErrorCode::kInput, part_name(2), [&] { file->check_unchanged(); });
}

TEST_F(SplitGguf, AMissingPartIsNamed) {
  std::filesystem::remove(part(2));
  test::expect_error(ErrorCode::kUnsupported, part_name(2) + ": found nothing, expected part 3 of 3",
                     [&] { GgufFile::open(part(0)); });
}

TEST_F(SplitGguf, APartOfAnotherNumberOrCountOrAWholeFileInItsPlaceIsRefused) {
  write_part(2, {}, {tensor("c", {32}, kTypeQ41, 0)}, block_, {0, 3, 3});
  expect_refused(part_name(2),
                 ": found part 1 of 3 with 3 tensors in all, expected part 3 of 3 with 3 tensors in all, as the");
  write_part(2, {}, {tensor("c", {32}, kTypeQ41, 0)}, block_, {2, 4, 3});
  expect_refused(part_name(2), ": found part 3 of 4");
  write_part(2, {}, {tensor("c", {32}, kTypeQ41, 0)}, block_, {2, 3, 9});
  expect_refused(part_name(2), ": found part 3 of 3 with 9 tensors in all");
  std::filesystem::copy_file(directory_ / "whole.gguf", part(2), std::filesystem::copy_options::overwrite_existing);
  expect_refused(part_name(2), ": found a whole file, expected part 3 of 3");
}

TEST_F(SplitGguf, APartOfAnotherModelIsRefused) {
  write_part(2, {key("general.name", kString, text("other"))}, {tensor("c", {32}, kTypeQ41, 0)}, block_);
  expect_refused(part_name(2), ": key \"general.name\": found another value than in the first part");
}

TEST_F(SplitGguf, ATensorInTwoPartsIsRefused) {
  write_part(2, {}, {tensor("a", {32}, kTypeQ41, 0)}, block_);
  expect_refused(part_name(2), ": tensor \"a\" is also in " + part_name(1));
}

TEST_F(SplitGguf, TooFewTensorsInAllPartsAreRefused) {
  write_part(2, {}, {}, "");
  expect_refused(part_name(0), ": found 2 tensors in the 3 parts, expected 3 (split.tensors.count)");
}

TEST_F(SplitGguf, ADamagedPartIsNamed) {
  directory_.write(part_name(2), "GGUF");
  expect_refused(part_name(2), ": byte 4: version: found 0 bytes, need 4");
}

TEST_F(SplitGguf, AFileWhoseNameHidesItsPartsIsRefused) {
  std::filesystem::rename(part(1), directory_ / "renamed.gguf");
  test::expect_error(ErrorCode::kInput, "expected a name that ends in \"-00002-of-00003.gguf\"",
                     [&] { GgufFile::open(directory_ / "renamed.gguf"); });
}

TEST(GgufSplitKeys, AreCheckedAgainstEachOther) {
  const auto metadata = [](const GgufValue& number, const GgufValue& count) {
    return GgufMetadata{{"split.no", number}, {"split.count", count}, {"split.tensors.count", std::uint64_t{5}}};
  };
  const auto split = gguf_split_of(metadata(std::int64_t{1}, std::uint64_t{2}), "m");
  ASSERT_TRUE(split);
  EXPECT_EQ(split->number, 1U);
  EXPECT_EQ(split->tensors, 5U);
  EXPECT_FALSE(gguf_split_of(metadata(std::uint64_t{0}, std::uint64_t{1}), "m"));
  EXPECT_FALSE(gguf_split_of({}, "m"));
  const auto expect_refused = [&](const GgufMetadata& keys, std::string_view message) {
    test::expect_error(ErrorCode::kInput, message, [&] { gguf_split_of(keys, "m"); });
  };
  expect_refused(metadata(std::uint64_t{2}, std::uint64_t{2}), "key \"split.no\": found 2, expected 0 to 1");
  expect_refused(metadata(std::int64_t{-1}, std::uint64_t{2}), "key \"split.no\": expected an integer");
  expect_refused(metadata(std::uint64_t{0}, std::uint64_t{100000}),
                 "key \"split.count\": expected an integer from 0 to 99999");
  expect_refused(metadata(std::uint64_t{0}, std::string_view("2")), "key \"split.count\": expected an integer");
  expect_refused({{"split.count", std::uint64_t{2}}}, "key \"split.no\": found nothing");
  expect_refused({{"split.count", std::uint64_t{2}}, {"split.no", std::uint64_t{0}}},
                 "split.tensors.count\": found nothing");
}

}  // namespace
}  // namespace kvs
