// SPDX-License-Identifier: Apache-2.0
// Weights in several files, and files that are not weights: N22 to N27.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/catalogue/catalogue.h"
#include "tests/catalogue/tensor_file.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model/model.safetensors.index.json";

/// The tiny model in 1.safetensors and 2.safetensors.
class Sharded {
 public:
  explicit Sharded(const fs::path& model) : model_(model) {
    const TensorFile whole(model / "model.safetensors");
    fs::remove(model / "model.safetensors");
    for (const auto& [name, entry] : whole.header.items()) {
      if (name == "__metadata__") continue;
      Part& part = parts_[name.find("layers.3.") != std::string::npos];
      const std::size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1], at = part.data.size();
      part.header[name] = entry;
      part.header[name]["data_offsets"] = {at, at + end - begin};
      part.data += whole.data.substr(begin, end - begin);
      map[name] = part_name(&part - parts_);
    }
    for (const Part& part : parts_) write_part(part_name(&part - parts_), part);
    write_index();
  }
  void write_index(const Json& metadata = Json::object()) const {
    std::ofstream(model_ / "model.safetensors.index.json") << Json{{"metadata", metadata}, {"weight_map", map}}.dump();
  }

  Json map = Json::object();

 private:
  struct Part {
    Json header = Json::object();
    std::string data;
  };
  static std::string part_name(std::ptrdiff_t number) { return std::to_string(number + 1) + ".safetensors"; }
  void write_part(const std::string& name, const Part& part) const {
    const std::string header = part.header.dump();
    std::ofstream(model_ / name, std::ios::binary) << little_endian(header.size()) << header << part.data;
  }

  fs::path model_;
  Part parts_[2];
};

constexpr const char* kLastKey = "model.layers.3.self_attn.k_proj.weight";

TEST_F(Catalogue, N22_NamesOfShardsAreNoPaths) {
  Sharded model(folder_ / "model");
  const Json sound = model.map;
  write("x", "secret");
  for (const std::string& name :
       {std::string("../x"), (folder_ / "x").string(), std::string("a/b"), std::string("..")}) {
    model.map[kLastKey] = name;
    model.write_index();
    expect_model_refused(3, {kIndex, "not a plain file name"});
  }
  model.map = sound;
  model.write_index();
  fs::rename(folder_ / "model/2.safetensors", folder_ / "elsewhere");
  fs::create_symlink("../elsewhere", folder_ / "model/2.safetensors");
  expect_model_refused(3, {"2.safetensors", "a link to"});
}

TEST_F(Catalogue, N22_LinksOfTheHubsCacheAreFollowed) {
  const Sharded model(folder_ / "model");
  fs::create_directories(folder_ / "hub/snapshots");
  fs::create_directories(folder_ / "hub/blobs");
  fs::rename(folder_ / "model/2.safetensors", folder_ / "hub/blobs/0a1b");
  fs::create_symlink("../../blobs/0a1b", folder_ / "model/2.safetensors");
  fs::rename(folder_ / "model", folder_ / "hub/snapshots/c0ffee");
  expect_model_taken("hub/snapshots/c0ffee");
}

TEST_F(Catalogue, N23_ShardsThatDoNotFitTheIndex) {
  Sharded model(folder_ / "model");
  const Json sound = model.map;
  model.map[kLastKey] = "3.safetensors";
  model.write_index();
  expect_model_refused(3, {"3.safetensors"});
  model.map[kLastKey] = "1.safetensors";
  model.write_index();
  expect_model_taken();  // it is in the other shard
  fs::copy_file(folder_ / "model/2.safetensors", folder_ / "model/3.safetensors");
  model.map[kLastKey] = "3.safetensors";
  model.write_index();
  expect_model_refused(3, {"3.safetensors", "is also in 2.safetensors"});
  model.map = sound;
  model.write_index();
  fs::remove(folder_ / "model/2.safetensors");
  expect_model_refused(3, {"2.safetensors"});
}

TEST_F(Catalogue, N24_AWrongTotalSizeIsAWarning) {
  const Sharded model(folder_ / "model");
  model.write_index({{"total_size", 17}});
  Words words = capture_words();
  std::erase(words, "--quiet");
  EXPECT_THAT(expect_done("kvspectrum", words).err, ::testing::HasSubstr("total_size is 17"));
}

TEST_F(Catalogue, N26_APointerOfGitLfs) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n";
  for (const std::string name : {"config.json", "model.safetensors"}) {
    const std::string whole = slurp(folder_ / "model" / name);
    write("model/" + name, pointer);
    expect_model_refused(3, {name, "Git LFS pointer, expected"});
    write("model/" + name, whole);
  }
  for (const char* name : {"m.gguf", "m.bin", "m"}) {
    write(name, pointer);
    expect_model_refused(3, {name, "Git LFS pointer, expected"}, name);
  }
  for (const char* name : {"t.txt", "t.jsonl"}) {
    write(name, pointer);
    expect_refused("kvspectrum", text_words({folder_ / name}), 3, {name, "Git LFS pointer, expected"});
  }
  write("model/tokenizer.json", pointer);
  write("t.txt", "abc");
  Words words{"capture", "--model", folder_ / "model", "--text", folder_ / "t.txt", "--out", folder_ / "out/c.h5"};
  expect_refused("kvspectrum", words, 3, {"tokenizer.json", "Git LFS pointer, expected"});
  fs::rename(folder_ / "model/tokenizer.json", folder_ / "model/tokenizer.model");
  expect_refused("kvspectrum", words, 3, {"tokenizer.model", "Git LFS pointer, expected"});
  write("c.json", pointer);
  expect_refused("kvcalibrate", {"validate", folder_ / "c.json"}, 3, {"c.json", "Git LFS pointer, expected"});
  write("c.h5", pointer);
  expect_refused("kvspectrum", {"verify", folder_ / "c.h5"}, 3, {"c.h5", "Git LFS pointer, expected"});
}

TEST_F(Catalogue, N27_PicklesAndZips) {
  for (const std::string_view bytes :
       {std::string_view("\x80\x02}q\x01X\x06weight"), std::string_view("PK\x03\x04zip")}) {
    write("model.bin", bytes);
    expect_model_refused(4, {"model.bin", "only safetensors and GGUF"}, "model.bin");
  }
  fs::rename(folder_ / "model/model.safetensors", folder_ / "model/pytorch_model.bin");
  expect_model_refused(4, {"only safetensors and GGUF"});
}

}  // namespace
}  // namespace kvs::testing
