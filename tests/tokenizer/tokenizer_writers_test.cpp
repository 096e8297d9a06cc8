// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "io/file.h"
#include "io/gguf.h"
#include "io/gguf_writer.h"
#include "io/json.h"
#include "tests/io/temporary_directory.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/gguf_tokenizer_writer.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json_writer.h"

namespace kvs::test {
namespace {

using ::testing::HasSubstr;

/// A tokenizer in three forms: a GGUF file or tokenizer.json, the other form made from it, and the first form made from
/// that.
class TokenizerForms : public ::testing::Test {
 protected:
  TokenizerForms() { fs::create_directory(folder_ / "back"); }

  std::unique_ptr<GgufFile> to_gguf(const fs::path& folder) {
    GgufMetadataWriter metadata;
    EXPECT_EQ(add_tokenizer_json(folder, 0, metadata, notes_), "");
    return write(metadata, folder / "m.gguf");
  }
  static std::unique_ptr<GgufFile> write(const GgufMetadataWriter& metadata, const fs::path& path) {
    write_file_atomically(path, "", true);
    write_gguf(path, metadata, {});
    return GgufFile::open(path);
  }
  /// A GGUF file of byte-level BPE: the bytes a, b, c, d and the added tokens.
  std::unique_ptr<GgufFile> byte_level(std::vector<std::string_view> tokens, std::vector<std::int32_t> types,
                                       std::vector<std::string_view> merges) {
    tokens.insert(tokens.begin(), {"a", "b", "c", "d"});
    types.insert(types.begin(), 4, kGgufNormal);
    GgufMetadataWriter metadata;
    metadata.add("tokenizer.ggml.model", "gpt2");
    metadata.add("tokenizer.ggml.pre", "gpt-2");
    metadata.add("tokenizer.ggml.tokens", std::span<const std::string_view>(tokens));
    metadata.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
    metadata.add("tokenizer.ggml.merges", std::span<const std::string_view>(merges));
    metadata.add("tokenizer.chat_template", "{{ one }}");
    metadata.add("tokenizer.chat_template.tool_use", "{{ two }}");
    metadata.add("tokenizer.chat_templates", std::span<const std::string_view>(names_));
    return write(metadata, folder_ / "m.gguf");
  }
  Json back(const char* name) { return parse_json(read_all(folder_ / "back" / name), name); }

  std::vector<std::string_view> names_{"tool_use"};
  std::vector<std::string> notes_;
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

TEST_F(TokenizerForms, BosBeginsATextInEveryForm) {
  constexpr const char* kTemplate = R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}}})";
  const auto asked = [](const Tokenizer& tokenizer) { return chosen_bos(tokenizer, BosChoice::kAuto); };
  Json tokenizer = parse_json(read_text_file(fs::path(KVS_GOLDEN_DIR) / "tokenizer_small.json", 1 << 24), "small");
  for (const bool adds : {true, false}) {
    tokenizer["post_processor"] = adds ? parse_json(kTemplate, "template") : Json();
    folder_.write("tokenizer.json", dump_json(tokenizer));
    folder_.write("tokenizer_config.json", R"({"bos_token": "<|endoftext|>"})");
    const auto file = to_gguf(folder_.path());
    EXPECT_EQ(file->get_boolean("tokenizer.ggml.add_bos_token"), adds);
    EXPECT_EQ(file->get_unsigned("tokenizer.ggml.bos_token_id", 9), 0U);
    EXPECT_EQ(asked(*load_tokenizer_gguf(*file)), adds ? 0 : -1);
    fs::remove_all(folder_ / "back");
    fs::create_directory(folder_ / "back");
    EXPECT_EQ(write_tokenizer_json(*file, folder_ / "back"), "");
    EXPECT_EQ(asked(*load_tokenizer_json(folder_ / "back" / "tokenizer.json")), adds ? 0 : -1);
    fs::remove(folder_ / "m.gguf");
  }
}

TEST_F(TokenizerForms, IdsWithoutATokenAreUnused) {
  fs::copy_file(fs::path(KVS_GOLDEN_DIR) / "tokenizer_small.json", folder_ / "tokenizer.json");
  const std::size_t tokens = load_tokenizer_json(folder_ / "tokenizer.json")->vocabulary_size();
  GgufMetadataWriter metadata;
  EXPECT_EQ(add_tokenizer_json(folder_.path(), tokens + 2, metadata, notes_), "");
  const auto file = write(metadata, folder_ / "m.gguf");
  const auto& types = std::get<std::vector<std::int64_t>>(file->get_array("tokenizer.ggml.token_type"));
  EXPECT_EQ(types.size(), tokens + 2);
  EXPECT_EQ(types.back(), kGgufUnused);
  EXPECT_EQ(load_tokenizer_gguf(*file)->vocabulary_size(), tokens + 2);
}

TEST_F(TokenizerForms, OnlyControlTokensAreSpecial) {
  const auto file =
      byte_level({"<ctl>", "<usr>", "<|eot_id|>"}, {kGgufControl, kGgufUserDefined, kGgufUserDefined}, {});
  EXPECT_EQ(write_tokenizer_json(*file, folder_ / "back"), "");
  const Json tokenizer = back("tokenizer.json");
  ASSERT_EQ(tokenizer.at("added_tokens").size(), 3U);
  EXPECT_TRUE(tokenizer.at("added_tokens").at(0).at("special"));
  EXPECT_FALSE(tokenizer.at("added_tokens").at(1).at("special"));
  EXPECT_TRUE(tokenizer.at("added_tokens").at(2).at("special"));  // by its text, as in llama.cpp
}

TEST_F(TokenizerForms, MergesOfTextsThatNothingMakesAreLeftOut) {
  const auto file = byte_level({"ab", "abc"}, {1, 1}, {"a b", "ab c", "zz d", "ac d"});
  EXPECT_EQ(write_tokenizer_json(*file, folder_ / "back"), "");
  EXPECT_EQ(back("tokenizer.json").at("model").at("merges"), Json({"a b", "ab c"}));
  EXPECT_EQ(load_tokenizer_json(folder_ / "back" / "tokenizer.json")->encode("abcd acd"),
            load_tokenizer_gguf(*file)->encode("abcd acd"));
}

TEST_F(TokenizerForms, AMergeThatMakesNoTokenIsSaidNotWritten) {
  const auto file = byte_level({"abc"}, {1}, {"a b", "ab c"});  // "abc" by way of "ab", which is not a token
  EXPECT_THAT(write_tokenizer_json(*file, folder_ / "back"), HasSubstr("found the merge \"a b\" of texts that are no"));
  EXPECT_FALSE(fs::exists(folder_ / "back" / "tokenizer.json"));
}

TEST_F(TokenizerForms, ChatTemplatesKeepTheirNames) {
  const auto file = byte_level({}, {}, {});
  EXPECT_EQ(write_tokenizer_json(*file, folder_ / "back"), "");
  const auto again = to_gguf(folder_ / "back");
  EXPECT_EQ(again->get_string("tokenizer.chat_template"), "{{ one }}");
  EXPECT_EQ(again->get_string("tokenizer.chat_template.tool_use"), "{{ two }}");
  // A file of its own takes precedence over tokenizer_config.json.
  folder_.write("back/chat_template.jinja", "{{ three }}");
  const auto changed = to_gguf(folder_ / "back");
  EXPECT_EQ(changed->get_string("tokenizer.chat_template"), "{{ three }}");
  EXPECT_FALSE(changed->has("tokenizer.chat_template.tool_use"));
  fs::create_directory(folder_ / "back" / "additional_chat_templates");
  folder_.write("back/additional_chat_templates/rag.jinja", "{{ four }}");
  EXPECT_EQ(to_gguf(folder_ / "back")->get_string("tokenizer.chat_template.rag"), "{{ four }}");
}

TEST_F(TokenizerForms, TokensBesideAreWrittenAndIdsOfConfigStandIn) {
  fs::copy_file(fs::path(KVS_GOLDEN_DIR) / "tokenizer_small.json", folder_ / "tokenizer.json");
  folder_.write("tokenizer_config.json", R"({"pad_token": "<x>", "added_tokens_decoder": {
    "693": {"content": "<x>", "special": true}, "694": {"content": "<y>", "rstrip": true}}})");
  folder_.write("config.json", R"({"model_type": "llama", "eos_token_id": [2, 1]})");
  const auto file = to_gguf(folder_.path());
  EXPECT_EQ(file->get_unsigned("tokenizer.ggml.eos_token_id", 9), 2U);
  EXPECT_EQ(file->get_unsigned("tokenizer.ggml.padding_token_id", 999), 693U);
  const auto& types = std::get<std::vector<std::int64_t>>(file->get_array("tokenizer.ggml.token_type"));
  EXPECT_EQ(types.at(693), kGgufControl);
  EXPECT_EQ(types.at(694), kGgufUserDefined);
  EXPECT_EQ(load_tokenizer_gguf(*file)->encode("a<x>b<y>c"),
            load_tokenizer_json(folder_ / "tokenizer.json")->encode("a<x>b<y>c"));
  EXPECT_THAT(notes_, ::testing::Contains(HasSubstr("rstrip")));
}

TEST_F(TokenizerForms, AClassOfItsOwnIsWrittenAsItCuts) {
  fs::copy_file(fs::path(KVS_GOLDEN_DIR) / "tokenizer_small.json", folder_ / "tokenizer.json");
  folder_.write("config.json", R"({"model_type": "qwen2"})");
  const auto file = to_gguf(folder_.path());
  EXPECT_EQ(file->get_string("tokenizer.ggml.pre"), "qwen2");
  EXPECT_EQ(load_tokenizer_gguf(*file)->encode(kText), load_tokenizer_json(folder_ / "tokenizer.json")->encode(kText));
  EXPECT_THAT(notes_, ::testing::Contains(HasSubstr("NFC")));
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
  std::vector<std::string> notes;
  EXPECT_EQ(add_tokenizer_json(folder.path(), 0, metadata, notes), "found no tokenizer.json");
  fs::copy_file(fs::path(KVS_GOLDEN_DIR) / "tokenizer_unigram.json", folder / "tokenizer.json");
  EXPECT_EQ(add_tokenizer_json(folder.path(), 0, metadata, notes), "found Unigram, expected BPE");
  EXPECT_EQ(metadata.count(), 0U);
}

TEST(GgufTokenizerWriter, TakesNoMergesThatScoresDoNotStandFor) {
  const TemporaryDirectory folder;
  Json tokenizer = parse_json(read_all(fs::path(KVS_GOLDEN_DIR) / "tokenizer_marked.json"), "golden");
  tokenizer["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMarker}};
  folder.write("tokenizer.json", dump_json(tokenizer));
  GgufMetadataWriter metadata;
  std::vector<std::string> notes;
  EXPECT_THAT(add_tokenizer_json(folder.path(), 0, metadata, notes), HasSubstr("merges"));
}

}  // namespace
}  // namespace kvs::test
