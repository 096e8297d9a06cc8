// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "io/tensor_archive.h"
#include "tests/io/bad_file.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using test::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFirst = test::safetensors_bytes(std::vector<test::NamedTensor>{{"b", {1}, {1}}, {"d", {1}, {2}}});
const std::string kSecond = test::safetensors_bytes(std::vector<test::NamedTensor>{{"a", {1}, {3}}, {"c", {1}, {4}}});
const std::string kWholeMap = R"({"a":"2.safetensors","b":"1.safetensors","c":"2.safetensors","d":"1.safetensors"})";

/// A folder with both shards and this weight map.
class Shards : public ::testing::Test {
 protected:
  std::unique_ptr<TensorArchive> open(std::string_view weight_map, std::string_view metadata = "{}") {
    index_ = directory_.write("model.safetensors.index.json", R"({"metadata":)" + std::string(metadata) +
                                                                  R"(,"weight_map":)" + std::string(weight_map) + "}");
    return open_safetensors(index_);
  }
  void expect_refused(std::string_view weight_map, std::string_view message) {
    test::expect_error(ErrorCode::kInput, message, [&] { open(weight_map); });
  }

  test::TemporaryDirectory directory_;
  std::filesystem::path first_ = directory_.write("1.safetensors", kFirst);
  std::filesystem::path second_ = directory_.write("2.safetensors", kSecond);
  std::filesystem::path index_;
};

TEST_F(Shards, AreOneArchiveInOrderOfNames) {
  const auto archive = open(kWholeMap, R"({"total_size":16})");
  std::vector<float> values;
  for (const StoredTensor& tensor : archive->tensors()) values.push_back(values_of(tensor)[0]);
  EXPECT_THAT(values, ElementsAre(3, 1, 4, 2));  // a, b, c, d
  EXPECT_EQ(archive->file_of(*archive->find("a")), second_);
  EXPECT_EQ(archive->file_of(*archive->find("d")), first_);
  EXPECT_EQ(archive->find("e"), nullptr);
  EXPECT_TRUE(archive->warnings().empty());
}

TEST_F(Shards, WrongTotalSizeIsAWarning) {
  const auto archive = open(kWholeMap, R"({"total_size":17})");
  ASSERT_EQ(archive->warnings().size(), 1U);
  EXPECT_THAT(archive->warnings()[0], HasSubstr("total_size is 17, the tensors hold 16 bytes"));
}

TEST_F(Shards, RefuseAnythingButAPlainFileName) {
  for (const char* name : {"../x", "/abs", "a/b", "..", ".", "", "a\\\\b", "a\\u0000b"})
    expect_refused(R"({"a":")" + std::string(name) + "\"}", "not a plain file name");
  expect_refused(R"({"a":1})", "weight_map: \"a\": found 1");
  expect_refused("[]", "/weight_map");
  expect_refused("{}", "/weight_map");
}

TEST_F(Shards, NameTheTensorAndTheShardThatDoNotFit) {
  expect_refused(R"({"a":"3.safetensors"})", "3.safetensors");
  directory_.write("3.safetensors", kFirst);
  expect_refused(R"({"b":"1.safetensors","d":"3.safetensors"})",
                 "3.safetensors: tensor \"b\" is also in 1.safetensors");
}

// Transformers uses the contents of the shards.
TEST_F(Shards, WithoutTensorsOfTheIndexAreWarnedOf) {
  const auto warnings = [&](std::string_view map) {
    const auto archive = open(map);
    return std::vector<std::string>(archive->warnings().begin(), archive->warnings().end());
  };
  EXPECT_THAT(warnings(R"({"a":"1.safetensors","b":"1.safetensors"})"),
              ElementsAre(HasSubstr("model.safetensors.index.json: 1 tensor is not in the shard where the index puts "
                                    "it: a")));
  EXPECT_THAT(warnings(R"({"a":"1.safetensors","b":"2.safetensors","x":"1.safetensors"})"),
              ElementsAre(HasSubstr("3 tensors are not in the shard where the index puts them: a, b, x")));
  EXPECT_EQ(values_of(*open(R"({"a":"1.safetensors","b":"2.safetensors"})")->find("a"))[0], 3);
}

TEST_F(Shards, FollowLinksOnlyInsideTheFolder) {
  namespace fs = std::filesystem;
  const test::TemporaryDirectory elsewhere;
  elsewhere.write("2.safetensors", kSecond);
  fs::remove(second_);
  fs::create_symlink(elsewhere / "2.safetensors", second_);
  expect_refused(kWholeMap, "2.safetensors: a link to");
  fs::remove(second_);
  directory_.write("real", kSecond);
  fs::create_symlink("real", second_);
  EXPECT_EQ(open(kWholeMap)->tensors().size(), 4U);
}

TEST(ShardLinks, OfTheHuggingFaceCacheAreFollowed) {
  namespace fs = std::filesystem;
  const test::TemporaryDirectory cache;
  fs::create_directories(cache / "blobs");
  fs::create_directories(cache / "snapshots/rev");
  cache.write("blobs/0a1b", kFirst);
  cache.write("blobs/2c3d", R"({"weight_map":{"b":"1.safetensors","d":"1.safetensors"}})");
  fs::create_symlink("../../blobs/0a1b", cache / "snapshots/rev/1.safetensors");
  fs::create_symlink("../../blobs/2c3d", cache / "snapshots/rev/model.safetensors.index.json");
  EXPECT_EQ(open_safetensors(cache / "snapshots/rev/model.safetensors.index.json")->tensors().size(), 2U);
}

TEST_F(Shards, ThatChangeWhileOpenAreNoticed) {
  const auto archive = open(kWholeMap);
  archive->check_unchanged();
  std::filesystem::resize_file(second_, kSecond.size() + 1);
  test::expect_error(ErrorCode::kInput, "2.safetensors", [&] { archive->check_unchanged(); });
}

}  // namespace
}  // namespace kvs
