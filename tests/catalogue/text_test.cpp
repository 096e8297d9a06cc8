// SPDX-License-Identifier: Apache-2.0
// Texts and token ids: N76 to N85.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/catalogue/catalogue.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(Catalogue, N76_EmptyOrBlankTexts) {
  std::filesystem::create_directory(folder_ / "texts");
  for (const auto& [name, bytes] : {std::pair{"a.txt", ""}, std::pair{"b.txt", " \n"}, std::pair{"c.jsonl", "\n \n"}}) {
    write(name, bytes);
    expect_refused("kvspectrum", text_words({folder_ / name}), 5, {"0 documents"});
  }
  expect_refused("kvspectrum", text_words({folder_ / "texts"}), 5, {"0 documents"});
}

TEST_F(Catalogue, N77_InvalidUtf8) {
  write("a.txt", std::string(40, 'a') + "\nb\xff" + std::string(40, 'c'));
  expect_refused("kvspectrum", text_words({folder_ / "a.txt"}), 3, {"a.txt: line 2, byte offset 42", R"(found \xff)"});
  Words words = text_words({folder_ / "a.txt"}, {"--invalid-utf8", "replace"});
  std::erase(words, "--quiet");
  EXPECT_THAT(expect_done("kvspectrum", words).err, HasSubstr("replaced 1 bytes of invalid UTF-8"));
}

TEST_F(Catalogue, N78_BytesStayAsTheyAre) {
  // letters_tokenizer() has no token for most of these: each byte becomes its own #, and none is dropped or joined.
  write("a.txt", std::string("\xef\xbb\xbf"
                             "a\r\n\0\r\n",
                             9) +
                     std::string(27, 'a'));
  const Json result = parse_json(expect_done("kvspectrum", text_words({folder_ / "a.txt"}, {"--json"})).out, "stdout");
  EXPECT_EQ(result.at("documents"), 1);
  EXPECT_EQ(result.at("tokens_dropped"), 4);  // 36 bytes, 32 of them in the window
}

TEST_F(Catalogue, N79_LinesThatAreNoTexts) {
  const std::string good = R"({"text":")" + std::string(32, 'a') + "\"}\n";
  for (const auto& [line, part] : {std::pair{"[1]\n", "line 2"}, std::pair{"{\"txt\":\"a\"}\n", "line 2: /text"},
                                   std::pair{"{\"text\":5}\n", "line 2: /text: found 5, expected a string"},
                                   std::pair{"{\"text\":\n", "line 2"}}) {
    write("a.jsonl", good + line + good);
    expect_refused("kvspectrum", text_words({folder_ / "a.jsonl"}), 3, {"a.jsonl", part});
    Words words = text_words({folder_ / "a.jsonl"}, {"--skip-bad-lines"});
    std::erase(words, "--quiet");
    EXPECT_THAT(expect_done("kvspectrum", words).err, HasSubstr("skipped 1 bad lines"));
    write("out/earlier", "made before");
  }
}

TEST_F(Catalogue, N81_ACutLastLine) {
  write("a.jsonl", R"({"text":")" + std::string(32, 'a') + "\"}\n{\"text\":\"aa");
  expect_refused("kvspectrum", text_words({folder_ / "a.jsonl"}), 3, {"a.jsonl: line 2: truncated"});
}

TEST_F(Catalogue, N82_TextsShorterThanAWindow) {
  write("a.txt", std::string(31, 'a'));
  write("b.txt", std::string(5, 'a'));
  write("c.txt", std::string(32, 'a'));
  expect_refused("kvspectrum", text_words({folder_ / "a.txt", folder_ / "b.txt"}), 5,
                 {"0 documents", "the longest of 2 texts has 31 tokens, expected at least 32"});
  Words words = text_words({folder_ / "a.txt", folder_ / "c.txt"});
  std::erase(words, "--quiet");
  EXPECT_THAT(expect_done("kvspectrum", words).err, HasSubstr("31 of 63 tokens left over"));
}

TEST_F(Catalogue, N83_TokenIds) {
  for (const char* id : {"-1", "64", "2147483648", "1.5"}) {
    write("tokens.jsonl", std::string("[1,2]\n[3, ") + id + "]\n");
    expect_model_refused(3, {"tokens.jsonl: line 2: column 5", std::string("found \"") + id + "\"", "from 0 to 63",
                             "vocabulary size 64"});
  }
}

TEST_F(Catalogue, N84_WindowsBeyondTheContext) {
  write("a.txt", std::string(600, 'a'));
  Words words = text_words({folder_ / "a.txt"});
  std::erase(words, "--quiet");
  *(std::ranges::find(words, "32")) = "600";
  EXPECT_THAT(expect_done("kvspectrum", words).err,
              HasSubstr("windows of 600 tokens are longer than the model's context of 512"));
}

TEST_F(Catalogue, N85_FilesThatAreNoFiles) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  expect_refused("kvspectrum", text_words({folder_ / "fifo"}), 2, {"found a FIFO, expected a regular file"});
  expect_refused("kvspectrum", text_words({"/dev/zero"}), 2, {"/dev/zero: found a device"});
  write("a.txt", std::string(40, 'a') + "\xff");
  expect_refused_after("exec <'" + (folder_ / "a.txt").string() + "'", "kvspectrum", text_words({"-"}), 3,
                       {"-: line 1, byte offset 40"});
  // A folder is read in the byte order of its names: B before a, whose second text is the bad one.
  std::filesystem::create_directory(folder_ / "texts");
  write("texts/a.txt", std::string(40, 'a') + "\xff");
  write("texts/B.txt", "\xff");
  expect_refused("kvspectrum", text_words({folder_ / "texts"}), 3, {"texts/B.txt: line 1"});
}

}  // namespace
}  // namespace kvs::testing
