// SPDX-License-Identifier: Apache-2.0
// Questions, and the environment of a program: N151 to N155.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/catalogue/catalogue.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST_F(Catalogue, N151_FilesOfQuestions) {
  const Words words{"eval", "--model", folder_ / "model", "--task", folder_ / "q.jsonl", "--method", "full", "--quiet"};
  const std::string good = R"({"context":"abc","question":"ab","answers":["a"]})";
  for (const char* line :
       {"{}", "[", "[1]", R"({"context":"abc","question":5,"answers":["a"]})",
        R"({"context":"","question":"","answers":["a"]})", R"({"context":"abc","question":"ab","answers":[]})",
        R"({"context":"abc","question":"ab","answers":[""]})", R"({"context":"abc","question":"ab"})",
        R"({"context":"abc","question":"ab","choices":["a","b"],"answer":2})",
        R"({"context":"abc","question":"ab","choices":["a","b"],"answer":-1})",
        R"({"context":"abc","question":"ab","answers":["a"],"choices":["a","b"],"answer":0})",
        R"({"question":"ab","answers":["a"],"answers":["b"]})"}) {
    write("q.jsonl", good + "\n" + line + "\n");
    expect_refused("kvcalibrate", words, 3, {"q.jsonl: line 2"});
  }
  write("q.jsonl", "");
  expect_refused("kvcalibrate", words, 5, {"q.jsonl: found no question"});
  write("q.jsonl", "\xff\n");
  expect_refused("kvcalibrate", words, 3, {"q.jsonl: line 1", "UTF-8"});
  expect_refused(
      "kvcalibrate",
      {"eval", "--model", folder_ / "model", "--task", folder_ / "none.jsonl", "--method", "full", "--quiet"}, 3,
      {"none.jsonl"});
}

TEST_F(Catalogue, N152_QuestionsWithoutRoom) {
  const auto refuse = [&](const Words& more, Parts parts) {
    Words words{"eval", "--model", folder_ / "model", "--method", "full", "--quiet", "--task"};
    words.insert(words.end(), more.begin(), more.end());
    expect_refused("kvcalibrate", words, 2, parts);
  };
  refuse({"needle", "--lengths", "20"}, {"--lengths: found 20 tokens, expected more"});
  refuse({"needle", "--lengths", "0"}, {"--lengths: found '0'"});
  refuse({"needle", "--lengths", "99999999999"}, {"--lengths: found '99999999999'"});
  for (const char* depth : {"101", "-1", "", "50,,60"})
    refuse({"needle", "--depths", depth}, {"--depths", std::string("found '") + depth + "'"});
  refuse({"needles"}, {"found 'needles'", "needle,"});
}

// A figure's picture is worth less than its result.
TEST_F(Catalogue, N153_PictureProgramMissingFailingOrKilled) {
  fs::create_directory(folder_ / "bin");
  Words words = calibrate_words(
      "faedkv", {"--chunks", "4", "--sinks", "2", "--recent", "3", "--out", folder_ / "out/earlier", "--force"});
  std::erase(words, "--quiet");
  const std::string only = "PATH='" + (folder_ / "bin").string() + "'";
  for (const auto& [script, part] :
       {std::pair{"", "rsvg-convert: not found"}, std::pair{"exit 3", "rsvg-convert: ended with status 3"},
        std::pair{"kill -9 $$", "rsvg-convert: killed by signal 9"},
        std::pair{"exit 0", "wrote no whole picture (0 bytes)"},
        std::pair{"printf '\\211PNG half'", "wrote no whole picture (9 bytes)"}}) {
    write("out/earlier", "made before");
    write("out/earlier_ablation.png", "made before");
    if (*script != '\0') {
      write("bin/rsvg-convert", std::string("#!/bin/sh\n") + script + '\n');
      fs::permissions(folder_ / "bin/rsvg-convert", fs::perms::owner_all);
    }
    const Outcome outcome = run_after(only, "kvcalibrate", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(outcome.err.find("not written"), outcome.err.rfind("not written"))
        << outcome.err;  // one note for two figures
    EXPECT_NE(slurp(folder_ / "out/earlier"), "made before");
    EXPECT_THAT(slurp(folder_ / "out/earlier_ablation.svg"), EndsWith("</svg>\n"));
    EXPECT_FALSE(fs::exists(folder_ / "out/earlier_ablation.png"));  // of another run
  }
}

// A file size limit below the size of a figure is an error, and no output is put in place.
TEST_F(Catalogue, N153_FiguresWithoutRoom) {
  const Words words = calibrate_words(
      "faedkv", {"--chunks", "4", "--sinks", "2", "--recent", "3", "--out", folder_ / "out/earlier", "--force"});
  const Outcome outcome = run_after("ulimit -f 8", "kvcalibrate", words);
  EXPECT_EQ(outcome.status, 6);
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_EQ(slurp(folder_ / "out/earlier"), "made before");
}

TEST_F(Catalogue, N154_StandardStreamsClosedOrFull) {
  write("text.txt", std::string(40, 'a'));
  expect_refused_after("exec <&-", "kvspectrum", text_words({"-"}), 5, {"0 documents"});
  expect_refused_after("exec <.", "kvspectrum", text_words({"-"}), 3, {"Is a directory"});
  EXPECT_EQ(run_after("exec 2>&-", "kvspectrum", text_words({folder_ / "none"})).status, 3);
  EXPECT_EQ(slurp(folder_ / "out/earlier"), "made before");
  for (const char* setup : {"exec 2>/dev/full", "exec 2>&-", "exec <&- >&- 2>&-"}) {
    Words words = text_words({folder_ / "text.txt"});
    std::erase(words, "--quiet");  // notes have nowhere to go
    EXPECT_EQ(run_after(setup, "kvspectrum", words).status,
              std::string(setup).find(">&- 2") == std::string::npos ? 0 : 6);
    expect_done("kvspectrum", {"verify", folder_ / "out/earlier"});
  }
}

TEST_F(Catalogue, N155_AFolderThatIsGone) {
  const std::string gone =
      "mkdir '" + (folder_ / "gone").string() + "'; cd '" + (folder_ / "gone").string() + "'; rmdir ../gone";
  Words words = capture_words();
  *(std::ranges::find(words, "--out") + 1) = "c.h5";
  expect_refused_after(gone, "kvspectrum", words, 6, {"c.h5", "No such file or directory"});
  expect_refused_after(gone, "kvspectrum", {"info", "model"}, 3, {"model: no such file or folder"});
  EXPECT_EQ(run_after(gone, "kvspectrum", capture_words()).status, 0);
}

}  // namespace
}  // namespace kvs::testing
