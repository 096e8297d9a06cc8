// SPDX-License-Identifier: Apache-2.0
// tokenizer.json: N67 to N75.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/catalogue/catalogue.h"
#include "tests/cli/letters_tokenizer.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTokenizer = "model/tokenizer.json";

/// Like the function above, and checks the notes.
std::vector<std::string> with_notes(std::vector<std::string> words) {
  std::erase(words, "--quiet");
  return words;
}

TEST_F(Catalogue, N67_MissingCutOrHuge) {
  write("text.txt", std::string(40, 'a'));
  const Words words = text_words({folder_ / "text.txt"});
  const std::string sound = slurp(folder_ / kTokenizer);
  expect_done("kvspectrum", words);
  write("out/earlier", "made before");
  std::filesystem::remove(folder_ / kTokenizer);
  expect_refused("kvspectrum", words, 3, {kTokenizer, "is missing"});
  write(kTokenizer, sound.substr(0, sound.size() / 2));
  expect_refused("kvspectrum", words, 3, {kTokenizer, "line 1", "column"});
  std::filesystem::resize_file(folder_ / kTokenizer, (256U << 20) + 1);
  expect_refused("kvspectrum", words, 3, {kTokenizer, "268435456"});
}

Json added(int id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

TEST_F(Catalogue, N68_OtherModels) {
  write("text.txt", std::string(40, 'a'));
  for (const char* type : {"WordPiece", "WordLevel", "Unigram"}) {
    edit_json(kTokenizer, [&](Json& tokenizer) { tokenizer["model"]["type"] = type; });
    expect_refused("kvspectrum", text_words({folder_ / "text.txt"}), 4, {kTokenizer, "/model/type", type, "BPE"});
  }
}

TEST_F(Catalogue, N69_Ids) {
  write("text.txt", std::string(40, 'a'));
  const auto refuse = [&](const Json& id, Parts parts) {
    write(kTokenizer, letters_tokenizer().dump());
    edit_json(kTokenizer, [&](Json& tokenizer) { tokenizer["model"]["vocab"]["a!"] = id; });
    expect_refused("kvspectrum", text_words({folder_ / "text.txt"}), 3, parts);
  };
  refuse(-1, {kTokenizer, R"(token "a!" has id -1)"});
  // If a vocabulary is larger than the embedding, only a text that needs the missing rows is refused.
  write(kTokenizer, letters_tokenizer().dump());
  edit_json(kTokenizer, [](Json& tokenizer) {
    tokenizer["model"]["vocab"]["ab"] = 64;
    tokenizer["model"]["merges"] = {"a b"};
  });
  const Words words = text_words({folder_ / "text.txt"});
  EXPECT_THAT(expect_done("kvspectrum", with_notes(words)).err,
              HasSubstr("found 65 tokens, the embedding has 64 rows"));
  write("text.txt", std::string(40, 'a') + "b");
  expect_refused("kvspectrum", words, 3, {kTokenizer, R"(found token "ab" with id 64 in a text)", "64 rows"});
}

TEST_F(Catalogue, N70_Merges) {
  write("text.txt", std::string(40, 'a'));
  const auto with = [&](const Json& merge) {
    edit_json(kTokenizer, [&](Json& tokenizer) {
      tokenizer["model"]["vocab"]["ab"] = 50;
      tokenizer["model"]["merges"] = Json::array({merge});
    });
  };
  for (const Json& merge : {Json("ab"), Json("a b c"), Json{"a", "b", "c"}, Json{"a"}, Json(5)}) {
    with(merge);
    expect_refused("kvspectrum", text_words({folder_ / "text.txt"}), 3, {kTokenizer, "/model/merges/0"});
  }
  with("a \u00e9");
  expect_refused("kvspectrum", text_words({folder_ / "text.txt"}), 3, {kTokenizer, "/model/merges/0", "vocabulary"});
  for (const Json& merge : {Json("a b"), Json{"a", "b"}}) {
    with(merge);
    expect_done("kvspectrum", text_words({folder_ / "text.txt"}));
  }
}

TEST_F(Catalogue, N71_AddedTokensThatContradictTheVocabulary) {
  write("text.txt", std::string(40, 'a'));
  for (const auto& [token, part] :
       {std::pair{added(9, "a"), R"(token "a" has id 1, as the package tokenizers gives it)"},
        std::pair{added(1, "<x>"), "the file says 1"}}) {
    edit_json(kTokenizer, [&](Json& tokenizer) { tokenizer["added_tokens"] = Json::array({token}); });
    EXPECT_THAT(expect_done("kvspectrum", with_notes(text_words({folder_ / "text.txt"}))).err, HasSubstr(part));
  }
}

TEST_F(Catalogue, N72_UnknownSteps) {
  write("text.txt", std::string(40, 'a'));
  for (const char* step : {"normalizer", "pre_tokenizer", "post_processor"}) {
    write(kTokenizer, letters_tokenizer().dump());
    edit_json(kTokenizer, [&](Json& tokenizer) { tokenizer[step] = {{"type", "Mystery"}}; });
    expect_refused("kvspectrum", text_words({folder_ / "text.txt"}), 4,
                   {kTokenizer, std::string("/") + step + "/type", "Mystery", "supported"});
  }
}

TEST_F(Catalogue, N73_UnknownSplitPatterns) {
  write("text.txt", std::string(40, 'a'));
  edit_json(kTokenizer, [](Json& tokenizer) {
    tokenizer["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "(a+)+$"}}}, {"behavior", "Isolated"}};
  });
  expect_refused("kvspectrum", text_words({folder_ / "text.txt"}), 4,
                 {kTokenizer, "/pre_tokenizer/pattern/Regex", "(a+)+$"});
}

TEST_F(Catalogue, N74_CharactersOutsideTheByteAlphabet) {
  write("text.txt", std::string(40, 'a'));
  edit_json(kTokenizer, [](Json& tokenizer) { tokenizer["model"]["vocab"]["a b"] = 50; });
  expect_done("kvspectrum", text_words({folder_ / "text.txt"}));
}

TEST_F(Catalogue, N75_AnEmptyVocabularyOrBosThatIsNoToken) {
  write("text.txt", std::string(40, 'a'));
  edit_json(kTokenizer, [](Json& tokenizer) { tokenizer["model"]["vocab"] = Json::object(); });
  expect_refused("kvspectrum", text_words({folder_ / "text.txt"}), 3, {kTokenizer, "/model/vocab", "found no token"});
  write(kTokenizer, letters_tokenizer().dump());
  expect_refused("kvspectrum", text_words({folder_ / "text.txt"}, {"--bos", "on"}), 2, {"--bos: found on"});
  write("model/tokenizer_config.json", R"({"bos_token": "<s>"})");
  const Outcome taken = expect_done("kvspectrum", with_notes(text_words({folder_ / "text.txt"})));
  EXPECT_THAT(taken.err, HasSubstr(R"(the bos_token "<s>" is not in the vocabulary)"));
}

}  // namespace
}  // namespace kvs::testing
