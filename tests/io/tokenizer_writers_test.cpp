#include <gmock/gmock.h>

#include "io/file.h"
#include "io/gguf.h"
#include "io/gguf_writer.h"
#include "io/json.h"
#include "io/tokenizer/byte_alphabet.h"
#include "io/tokenizer/gguf_tokenizer_writer.h"
#include "io/tokenizer/gguf_vocabulary.h"
#include "io/tokenizer/tokenizer.h"
#include "io/tokenizer/tokenizer_json_writer.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

using ::testing::HasSubstr;

/// A tokenizer in three forms: a GGUF file or tokenizer.json, the other form made of it, and that one's in turn.
class TokenizerForms : public ::testing::Test {
 protected:
  TokenizerForms() { fs::create_directory(folder_ / "back"); }

  std::unique_ptr<GgufFile> to_gguf(const fs::path& folder) const {
    GgufMetadataWriter metadata;
    EXPECT_EQ(add_tokenizer_json(folder, 0, metadata), "");
    return write(metadata, folder / "m.gguf");
  }
  static std::unique_ptr<GgufFile> write(const GgufMetadataWriter& metadata, const fs::path& path) {
    write_file_atomically(path, "", false);
    write_gguf(path, metadata, {});
    return GgufFile::open(path);
  }
  TemporaryDirectory folder_;
};

constexpr const char* kText =
    "The sun's rays, 1704: \"Opticks\" \u00e9\u4e2d\U0001F600  two spaces\n\n\tdef f(x): return x**2 <|x|>";

TEST_F(TokenizerForms, ByteLevelBpeKeepsItsIds) {
  fs::copy_file(fs::path(KVS_GOLDEN_DIR) / "tokenizer_small.json", folder_ / "tokenizer.json");
  folder_.write("tokenizer_config.json", R"({"bos_token": null, "chat_template": "{{ messages }}"})");
  const auto file = to_gguf(folder_.path());
  EXPECT_EQ(file->get_string("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(file->get_string("tokenizer.chat_template"), "{{ messages }}");
  EXPECT_EQ(write_tokenizer_json(*file, folder_ / "back"), "");
  const auto ids = load_tokenizer_json(folder_ / "tokenizer.json")->encode(kText);
  EXPECT_EQ(load_tokenizer_gguf(*file)->encode(kText), ids);
  EXPECT_EQ(load_tokenizer_json(folder_ / "back" / "tokenizer.json")->encode(kText), ids);
}

TEST_F(TokenizerForms, SentencePiecesBpeKeepsItsIds) {
  std::vector<std::string> texts{"<unk>", "<s>", "a", "b", "\u2581", "ab", "bb", "\u2581a", "abb", "bbbb"};
  std::vector<std::int32_t> types{kGgufUnknown, kGgufControl, 1, 1, 1, 1, 1, 1, 1, 1};
  std::vector<float> scores{0, 0, -9, -9, -9, -2, -1, -3, -5, -4};
  for (int byte = 0; byte < 256; ++byte) {
    texts.push_back(name_of_byte_token(static_cast<unsigned char>(byte)));
    types.push_back(kGgufByte);
    scores.push_back(0);
  }
  GgufMetadataWriter metadata;
  metadata.add("tokenizer.ggml.model", "llama");
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  metadata.add("tokenizer.ggml.tokens", std::span<const std::string_view>(views));
  metadata.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
  metadata.add("tokenizer.ggml.scores", std::span<const float>(scores));
  metadata.add("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  const auto file = write(metadata, folder_ / "m.gguf");
  EXPECT_EQ(write_tokenizer_json(*file, folder_ / "back"), "");
  const auto back = to_gguf(folder_ / "back");
  EXPECT_EQ(back->get_string("tokenizer.ggml.model"), "llama");
  for (const char* text : {"ab abb bbbbb", "a  b\u00e9", "<s>bab", ""}) {
    const auto ids = load_tokenizer_gguf(*file)->encode(text);
    EXPECT_EQ(load_tokenizer_json(folder_ / "back" / "tokenizer.json")->encode(text), ids) << text;
    EXPECT_EQ(load_tokenizer_gguf(*back)->encode(text), ids) << text;
  }
}

TEST_F(TokenizerForms, IdsWithoutATokenAreUnused) {
  fs::copy_file(fs::path(KVS_GOLDEN_DIR) / "tokenizer_small.json", folder_ / "tokenizer.json");
  const std::size_t tokens = load_tokenizer_json(folder_ / "tokenizer.json")->vocabulary_size();
  GgufMetadataWriter metadata;
  EXPECT_EQ(add_tokenizer_json(folder_.path(), tokens + 2, metadata), "");
  const auto file = write(metadata, folder_ / "m.gguf");
  const auto& types = std::get<std::vector<std::int64_t>>(file->get_array("tokenizer.ggml.token_type"));
  EXPECT_EQ(types.size(), tokens + 2);
  EXPECT_EQ(types.back(), kGgufUnused);
  EXPECT_EQ(load_tokenizer_gguf(*file)->vocabulary_size(), tokens + 2);
}

TEST(TokenizerJsonWriter, SaysWhatItCannotWrite) {
  const TemporaryDirectory folder;
  GgufMetadataWriter metadata;
  metadata.add("tokenizer.ggml.model", "bert");
  write_gguf(folder.write("m.gguf", ""), metadata, {});
  EXPECT_THAT(write_tokenizer_json(*GgufFile::open(folder / "m.gguf"), folder.path()),
              HasSubstr("found tokenizer \"bert\""));
  EXPECT_FALSE(fs::exists(folder / "tokenizer.json"));
}

TEST(GgufTokenizerWriter, SaysWhatItCannotWrite) {
  const TemporaryDirectory folder;
  GgufMetadataWriter metadata;
  EXPECT_EQ(add_tokenizer_json(folder.path(), 0, metadata), "found no tokenizer.json");
  fs::copy_file(fs::path(KVS_GOLDEN_DIR) / "tokenizer_unigram.json", folder / "tokenizer.json");
  EXPECT_EQ(add_tokenizer_json(folder.path(), 0, metadata), "found Unigram, expected BPE");
  EXPECT_EQ(metadata.count(), 0U);
}

TEST(GgufTokenizerWriter, TakesNoMergesThatScoresDoNotStandFor) {
  const TemporaryDirectory folder;
  Json tokenizer = parse_json(read_all(fs::path(KVS_GOLDEN_DIR) / "tokenizer_marked.json"), "golden");
  tokenizer["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMarker}};
  folder.write("tokenizer.json", dump_json(tokenizer));
  GgufMetadataWriter metadata;
  EXPECT_THAT(add_tokenizer_json(folder.path(), 0, metadata), HasSubstr("merges"));
}

}  // namespace
}  // namespace kvs::test
