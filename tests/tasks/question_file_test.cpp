// SPDX-License-Identifier: Apache-2.0
#include "tasks/question_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "io/digest.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Questions : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& content) {
    auto path = folder_.path() / "q.jsonl";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  void refuse(const std::string& content, const std::string& part, ErrorCode code = ErrorCode::kInput) {
    try {
      (void)read_questions(file(content));
      ADD_FAILURE() << content;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
  test::TemporaryDirectory folder_;
};

TEST_F(Questions, HaveAnswersOrChoices) {
  const std::string content =
      R"({"context": "Ice is cold.", "question": "Is it?", "answers": ["Yes", "It is"]})"
      "\n\n"
      R"({"context": "Text\n", "question": "Which?", "choices": ["a", "b"], "answer": 1, "id": 3})";
  const QuestionFile read = read_questions(file(content));
  ASSERT_EQ(read.samples.size(), 2U);
  EXPECT_EQ(read.samples[0].prompt(), "Ice is cold.\nIs it?");
  EXPECT_THAT(read.samples[0].answers, ElementsAre("Yes", "It is"));
  EXPECT_EQ(read.samples[1].prompt(), "Text\nWhich?");
  EXPECT_THAT(read.samples[1].choices, ElementsAre("a", "b"));
  EXPECT_THAT(read.samples[1].answers, ElementsAre("b"));
  EXPECT_EQ(read.sha256, sha256_of(content));
}

TEST_F(Questions, AreRefusedWithLineAndField) {
  const std::string good = R"({"context": "c", "question": "q", "answers": ["a"]})"
                           "\n";
  refuse(good + R"({"context": "c", "question": "q", "answers": ["a"})"
                "\n",
         "q.jsonl: line 2: column");
  refuse(good + R"({"context": "c", "quest)", "q.jsonl: line 2: truncated");
  refuse(good + good + R"({"context": 3, "question": "q", "answers": ["a"]})", "line 3: /context: found 3");
  refuse(R"({"context": "c", "answers": ["a"]})", "line 1: ");
  refuse(R"({"context": "c", "question": "q"})", "expected either answers or choices");
  refuse(R"({"context": "c", "question": "q", "answers": ["a"], "choices": ["a", "b"], "answer": 0})", "either");
  refuse(R"({"context": "c", "question": "q", "answers": []})", "line 1: /answers: ");
  refuse(R"({"context": "c", "question": "q", "answers": ["a", " "]})", "/answers/1: ");
  refuse(R"({"context": "c", "question": "q", "choices": ["a"], "answer": 0})", "/choices: ");
  refuse(R"({"context": "c", "question": "q", "choices": ["a", "b"], "answer": 2})", "/answer: found 2");
  refuse(R"({"context": "c", "question": "q", "choices": ["a", "a"], "answer": 1})", "expected choices that differ");
  refuse(R"({"context": "", "question": " ", "answers": ["a"]})", "/question: ");
  refuse("\xff\n", "line 1: byte 0");
  refuse("\n\n", "found no question", ErrorCode::kData);
}

TEST_F(Questions, HaystacksAreTextsOneBelowTheOther) {
  TextReader reader({});
  const std::string path = (folder_.path() / "hay.txt").string();
  std::ofstream(path) << "\n Some words.\n";
  EXPECT_EQ(read_haystack(std::vector<std::string>{path, path}, reader), "Some words.\n\n\n Some words.");
  EXPECT_EQ(reader.sha256().size(), 2U);
  EXPECT_EQ(read_haystack({}, reader), "");
}

class Haystacks : public Questions {
 protected:
  std::string read(const std::string& name, const std::string& content) {
    const std::string path = (folder_.path() / name).string();
    std::ofstream(path, std::ios::binary) << content;
    TextReader reader({});
    std::string text = read_haystack(std::span(&path, 1), reader);
    EXPECT_EQ(reader.sha256(), std::vector<std::string>{sha256_of(content)});
    return text;
  }
  void refuse(const std::string& name, const std::string& content, ErrorCode code, const std::string& part) {
    try {
      (void)read(name, content);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr(name), HasSubstr(part)));
    }
  }
};

TEST_F(Haystacks, AreTheTextsOfLinesOfJson) {
  EXPECT_EQ(read("a.jsonl", "{\"text\": \"One \\u00e9.\"}\r\n\n{\"id\": 1, \"text\": \"Two.\"}"), "One é.\nTwo.");
  refuse("b.jsonl", "{\"text\": 3}\n", ErrorCode::kInput, "line 1: /text");
  refuse("b.jsonl", "{\"content\": \"a\"}\n", ErrorCode::kInput, "line 1");
  refuse("b.jsonl", "{\"text\": \" \"}\n", ErrorCode::kInput, "found no word");
}

TEST_F(Haystacks, AreReadAsOtherTextsAre) {
  const auto path = [&](const std::string& name) { return (folder_.path() / name).string(); };
  std::ofstream(path("b.jsonl")) << "{\"text\": \"One.\"}\nno JSON\n{\"text\": \"Two.\"}\n";
  std::ofstream(path("a.txt")) << "An \xff.";
  std::ofstream(path(".hidden")) << "no";
  TextReader reader({.replace_invalid_utf8 = true, .skip_bad_lines = true});
  const std::string folder = folder_.path().string();
  EXPECT_EQ(read_haystack(std::span(&folder, 1), reader), "An \uFFFD.\nOne.\nTwo.");
  EXPECT_EQ(reader.sha256().size(), 2U);
  EXPECT_EQ(reader.skipped_lines(), 1U);
  EXPECT_EQ(reader.replaced_bytes(), 1U);
}

TEST_F(Haystacks, OfOtherKindsAreRefusedByName) {
  refuse("a.parquet", "PAR1....PAR1", ErrorCode::kUnsupported, "Parquet");
  refuse("a.txt", "PAR1....PAR1", ErrorCode::kUnsupported, "Parquet");
  refuse("a.gz", "\x1f\x8b..", ErrorCode::kUnsupported, "gzip");
  refuse("a.txt", "%PDF-1.4", ErrorCode::kUnsupported, "PDF");
  refuse("a.txt", "version https://git-lfs.github.com/spec/v1\n", ErrorCode::kInput, "Git LFS pointer");
  refuse("a.txt", " \n", ErrorCode::kInput, "found no word");
  refuse("a.txt", "a\xff", ErrorCode::kInput, "line 1, byte offset 1");
}

TEST_F(Questions, AnswersHaveNoBlanksAtTheirEnds) {
  const QuestionFile read = read_questions(file(
      "{\"context\": \"c\", \"question\": \"q\", \"answers\": [\" Newton\\n\"]}\r\n"
      "{\"context\": \"c\", \"question\": \"q\", \"choices\": [\" red\", \" \\ud83d\\ude42\"], \"answer\": 1}\r\n"));
  EXPECT_THAT(read.samples[0].answers, ElementsAre("Newton"));
  EXPECT_THAT(read.samples[1].choices, ElementsAre("red", "🙂"));
  EXPECT_THAT(read.samples[1].answers, ElementsAre("🙂"));
}

}  // namespace
}  // namespace kvs
