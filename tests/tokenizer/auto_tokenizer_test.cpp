// SPDX-License-Identifier: Apache-2.0
// Ids and bos of tokenizers with files next to tokenizer.json, against AutoTokenizer of Transformers
// (tests/golden/make_auto_tokenizer_golden.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "io/json.h"
#include "tests/io/temporary_directory.h"
#include "tokenizer/tokenizer.h"

namespace kvs::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json golden(const std::string& name) { return parse_json(read_all(fs::path(KVS_GOLDEN_DIR) / name), name); }

const Json& cases() {
  static const Json all = golden("auto_tokenizer_ids.json");
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : cases().items())
    if (name != "texts") names.push_back(name);
  return names;
}

/// Makes a folder with the files of a case; returns its tokenizer.json.
fs::path write_case(const TemporaryDirectory& folder, const Json& one) {
  Json tokenizer = golden("tokenizer_" + one.at("base").get<std::string>() + ".json");
  tokenizer.merge_patch(one.at("changes"));
  for (const auto& [name, content] : one.at("files").items()) folder.write(name, dump_json(content));
  return folder.write("tokenizer.json", dump_json(tokenizer));
}

class AutoTokenizer : public ::testing::TestWithParam<std::string> {};

TEST_P(AutoTokenizer, GivesItsIds) {
  const TemporaryDirectory folder;
  const Json& one = cases().at(GetParam());
  const auto tokenizer = load_tokenizer_json(write_case(folder, one));
  for (std::size_t i = 0; i < cases().at("texts").size(); ++i)
    EXPECT_EQ(tokenizer->encode(cases().at("texts").at(i).get<std::string>()),
              one.at("ids").at(i).get<std::vector<std::int32_t>>())
        << cases().at("texts").at(i);
  EXPECT_EQ(tokenizer->bos(), one.at("bos").is_null() ? -1 : one.at("bos").get<std::int32_t>());
}

INSTANTIATE_TEST_SUITE_P(Golden, AutoTokenizer, ::testing::ValuesIn(names()), [](const auto& one) {
  std::string safe = one.param;
  for (char& c : safe)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return safe;
});

std::vector<std::string> notes_of(const Json& files, const Json& changes = Json::object()) {
  const TemporaryDirectory folder;
  return load_tokenizer_json(write_case(folder, {{"base", "small"}, {"changes", changes}, {"files", files}}))->notes();
}

TEST(TokenizerSettings, ANoteSaysWhatMayDiffer) {
  EXPECT_THAT(notes_of(Json::object()), IsEmpty());
  EXPECT_THAT(notes_of({{"tokenizer_config.json", {{"tokenizer_class", "CohereTokenizer"}}}}),
              ElementsAre(HasSubstr("class CohereTokenizer has steps of its own")));
  EXPECT_THAT(notes_of({{"tokenizer_config.json", {{"auto_map", {{"AutoTokenizer", {"a.B", nullptr}}}}}}}),
              ElementsAre(HasSubstr("auto_map")));
  EXPECT_THAT(notes_of({{"tokenizer_config.json", {{"added_tokens_decoder", {{"900", {{"content", "<x>"}}}}}}}}),
              ElementsAre(HasSubstr("\"<x>\" has id 693, as the package tokenizers gives it; the file says 900")));
}

TEST(TokenizerSettings, MalformedFilesAreNamed) {
  for (const auto& [file, content, message] :
       {std::tuple("tokenizer_config.json", R"({"added_tokens_decoder": []})", "/added_tokens_decoder"),
        std::tuple("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "<x>"}}})",
                   "an id as its key"),
        std::tuple("tokenizer_config.json", R"({"added_tokens_decoder": {"9": {"special": true}}})", "content"),
        std::tuple("tokenizer_config.json", R"({"bos_token": 5})", "/bos_token"),
        std::tuple("tokenizer_config.json", R"({"split_special_tokens": "yes"})", "/split_special_tokens"),
        std::tuple("tokenizer_config.json", "[]", "an object"),
        std::tuple("special_tokens_map.json", R"({"additional_special_tokens": [7]})", "/additional_special_tokens/0"),
        std::tuple("added_tokens.json", R"({"<x>": -1})", "/<x>")}) {
    const TemporaryDirectory folder;
    const auto path = write_case(folder, {{"base", "small"}, {"changes", Json::object()}, {"files", Json::object()}});
    folder.write(file, content);
    try {
      load_tokenizer_json(path);
      ADD_FAILURE() << content;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput) << error.what();
      EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr(file), HasSubstr(message)));
    }
  }
}

TEST(TokenizerSettings, AnUnknownTokenThatIsNoneIsAnErrorOfTheTextThatNeedsIt) {
  const TemporaryDirectory folder;
  Json changes{{"model", {{"unk_token", "<nope>"}, {"byte_fallback", false}}}, {"pre_tokenizer", nullptr}};
  const auto tokenizer =
      load_tokenizer_json(write_case(folder, {{"base", "marked"}, {"changes", changes}, {"files", Json::object()}}));
  EXPECT_NO_THROW(tokenizer->encode("the"));
  try {
    tokenizer->encode("the \U0001F600");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_THAT(error.what(), HasSubstr("/model/unk_token: found \"<nope>\", which is no token"));
  }
}

}  // namespace
}  // namespace kvs::test
