// SPDX-License-Identifier: Apache-2.0
#include "io/gguf_writer.h"

#include <gmock/gmock.h>

#include <array>

#include "io/gguf.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<GgufFile> written(const TemporaryDirectory& directory, const GgufMetadataWriter& metadata,
                                  std::span<const OutputTensor> tensors) {
  const auto file = directory.write("m.gguf", "");
  write_gguf(file, metadata, tensors);
  return GgufFile::open(file);
}

TEST(GgufWriter, MetadataIsReadBack) {
  GgufMetadataWriter metadata;
  metadata.add("u", std::uint32_t{7});
  metadata.add("f", 0.5F);
  metadata.add("b", true);
  metadata.add("s", "text");
  metadata.add("strings", std::span<const std::string_view>(std::array<std::string_view, 2>{"a", ""}));
  metadata.add("ints", std::span<const std::int32_t>(std::array{1, -2}));
  metadata.add("floats", std::span<const float>(std::array{0.25F}));
  const TemporaryDirectory directory;
  const auto file = written(directory, metadata, {});
  EXPECT_EQ(file->metadata().size(), 7U);
  EXPECT_EQ(file->get_unsigned("u", 10), 7U);
  EXPECT_EQ(file->get_real("f"), 0.5);
  EXPECT_TRUE(file->get_boolean("b"));
  EXPECT_EQ(file->get_string("s"), "text");
  EXPECT_THAT(std::get<std::vector<std::string_view>>(file->get_array("strings")), ElementsAre("a", ""));
  EXPECT_THAT(std::get<std::vector<std::int64_t>>(file->get_array("ints")), ElementsAre(1, -2));
  EXPECT_THAT(std::get<std::vector<double>>(file->get_array("floats")), ElementsAre(0.25));
}

TEST(GgufWriter, TakesValuesOverAsTheyAre) {
  GgufMetadataWriter first, second;
  first.add("s", "text");
  first.add("ints", std::span<const std::int32_t>(std::array{1, -2}));
  const TemporaryDirectory directory, other;
  const auto from = written(directory, first, {});
  for (const auto& [key, value] : from->encoded()) second.add_encoded(key, value);
  const auto to = written(other, second, {});
  EXPECT_EQ(to->metadata(), from->metadata());
}

TEST(GgufWriter, TensorsAreReadBack) {
  const std::vector<OutputTensor> tensors{held_tensor("b", {2, 1, 3}, {1, 2, 3, 4, 5, 6}, DType::kBF16),
                                          held_tensor("a", {2}, {7, 8}), held_tensor("c", {1}, {9}, DType::kF16)};
  const TemporaryDirectory directory;
  const auto file = written(directory, {}, tensors);
  ASSERT_EQ(file->tensors().size(), 3U);
  const StoredTensor& b = *file->find("b");
  EXPECT_EQ(b.type_name, "BF16");
  EXPECT_THAT(b.shape, ElementsAre(2U, 1U, 3U));
  std::vector<float> values(6);
  read_rows(b, 0, 2, values);
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(file->find("c")->type_name, "F16");
}

TEST(GgufWriter, RefusesWhatNobodyCouldRead) {
  const TemporaryDirectory directory;
  const auto refused = [&](std::vector<OutputTensor> tensors) {
    expect_error(ErrorCode::kInternal, "", [&] { written(directory, {}, tensors); });
  };
  refused({held_tensor(std::string(64, 'n'), {1}, {1})});
  refused({held_tensor("a", {}, {1})});
  refused({held_tensor("a", {1, 1, 1, 1, 1}, {1})});
  refused({held_tensor("a", {2, 0}, {})});
  refused({held_tensor("a", {1}, {1}), held_tensor("a", {1}, {1})});
  GgufMetadataWriter metadata;
  metadata.add("k", true);
  expect_error(ErrorCode::kInternal, "not taken", [&] { metadata.add("k", false); });
  expect_error(ErrorCode::kInternal, "not taken", [&] { metadata.add("", false); });
}

}  // namespace
}  // namespace kvs::test
