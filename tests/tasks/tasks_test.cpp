// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/error.h"
#include "io/digest.h"
#include "io/json.h"
#include "tasks/haystack.h"
#include "tasks/prompt.h"
#include "tasks/task.h"
#include "tests/io/temporary_directory.h"
#include "tests/tasks/four_bytes.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Prompts from the programs that define the tasks (golden/make_tasks_golden.py).
TEST(TaskGenerators, MakeTheTextsOfTheirDefinitionsFromASeed) {
  const Json golden = parse_json(content(std::string(KVS_GOLDEN_DIR) + "/tasks.json"), "tasks.json");
  const std::string text = content(std::string(KVS_DATA_DIR) + "/opticks_sample.txt"), essay(stripped(text));
  const auto depths = golden.at("depths").get<std::vector<double>>();
  const test::FourByteTokenizer tokenizer;
  std::set<std::string> seen;
  for (const Json& entry : golden.at("tasks")) {
    const auto name = entry.at("task").get<std::string>();
    const TaskDefinition* task = find_task(name);
    ASSERT_NE(task, nullptr) << name;
    seen.insert(name);
    const std::vector<TaskSample> samples =
        task->make({.tokenizer = tokenizer,
                    .length = entry.at("length").get<std::size_t>(),
                    .samples = task->has_depths ? 1U : 2U,
                    .seed = golden.at("seed").get<std::uint64_t>(),
                    .haystack = entry.at("haystack") == true ? std::string_view(essay) : std::string_view(),
                    .depths = depths});
    ASSERT_EQ(samples.size(), entry.at("samples").size()) << name;
    for (std::size_t n = 0; n < samples.size(); ++n) {
      const Json& expected = entry.at("samples").at(n);
      const std::string what = name + " of " + entry.at("length").dump() + ", sample " + std::to_string(n);
      EXPECT_EQ(Json(samples[n].answers), expected.at("answers")) << what;
      EXPECT_EQ(tokenizer.encode(samples[n].prompt()).size(), expected.at("tokens")) << what;
      EXPECT_EQ(sha256_of(samples[n].prompt()), expected.at("sha256")) << what;
      EXPECT_EQ(samples[n].length, entry.at("length")) << what;
    }
  }
  for (const TaskDefinition* task : task_definitions()) EXPECT_TRUE(seen.contains(std::string(task->name)));
}

TEST(TaskGenerators, AnotherSeedIsAnotherTextOfTheSameLength) {
  const test::FourByteTokenizer tokenizer;
  const auto make = [&](std::uint64_t seed) {
    return find_task("ruler-niah-single-1")->make({.tokenizer = tokenizer, .length = 1024, .seed = seed}).front();
  };
  EXPECT_EQ(make(3).prompt(), make(3).prompt());
  EXPECT_NE(make(3).answers, make(4).answers);
  EXPECT_NE(make(3).answers, make((std::uint64_t{1} << 32U) + 3).answers);
}

TEST(TaskGenerators, LengthsHoldBosPromptAndAnswer) {
  constexpr std::int32_t kBos = 1 << 20;
  constexpr std::size_t kLength = 4000;
  const std::vector<double> depths{0, 0.5, 1};
  for (const std::size_t bytes : {1U, 4U})
    for (const TaskDefinition* task : task_definitions()) {
      const test::PieceTokenizer tokenizer(bytes);
      std::size_t most = 0;
      for (std::uint64_t seed = 0; seed < 6; ++seed)
        for (const TaskSample& sample : task->make({.tokenizer = tokenizer,
                                        .bos = kBos,
                                        .length = kLength,
                                        .seed = seed,
                                        .haystack = "Some words of a text. And others.",
                                        .depths = depths})) {
          const Prompt prompt = encode_prompt(tokenizer, sample, AnswerRule::kAll, kBos);
          most = std::max({most, prompt.longest(), prompt.ids.size() + task->answer_tokens});
        }
      EXPECT_LE(most, kLength) << task->name << ", bytes of a token: " << bytes;
      if (task->has_depths) {
        EXPECT_GE(most, kLength - 8) << task->name << ", bytes of a token: " << bytes;
      }
    }
}

TEST(VariableTracking, NamesTheLengthThatWasAskedFor) {
  const test::PieceTokenizer tokenizer(1);  // a solved example of RULER's 500 tokens has no space for a sentence
  const auto make = [&](std::size_t length) {
    return kVariableTrackingTask.make({.tokenizer = tokenizer, .length = length}).front();
  };
  EXPECT_LE(tokenizer.encode(make(2000).prompt()).size() + kVariableTrackingTask.answer_tokens, 2000U);
  test::expect_error(ErrorCode::kUsage, "--lengths: found 1000 tokens, expected more", [&] { make(1000); });
}

TEST(TaskGenerators, RefuseALengthWithoutRoom) {
  const test::FourByteTokenizer tokenizer;
  const std::vector<double> depths{0.5};
  for (const TaskDefinition* task : task_definitions())
    EXPECT_THROW(
        task->make({.tokenizer = tokenizer, .length = 100, .haystack = "Some words. And others.", .depths = depths}),
        Error)
        << task->name;
}

TEST(Haystack, PartsTextsAtBlanks) {
  EXPECT_THAT(words_of(" a\nbc  d"), ElementsAre("a", "bc", "d"));
  EXPECT_THAT(sentences_of(" One. Two?\nThree: 3.5 e.g.\t"), ElementsAre("One.", "Two?", "Three: 3.5 e.g."));
  EXPECT_THAT(sentences_of("  "), ElementsAre());
  EXPECT_EQ(UnitSupply("a b c").first(5), "a b c a b");
  EXPECT_EQ(UnitSupply("a\n\nb  c ").first_as_written(5), "a\n\nb  c a\n\nb");
}

/// "甲乙丙…" without a blank, with the given number of characters.
std::string ideographs(std::size_t count) {
  std::string text;
  for (std::size_t n = 0; n < count; ++n) {
    const std::uint32_t code = 0x4E00 + static_cast<std::uint32_t>(n * 7919 % 20000);
    text += static_cast<char>(0xE0U | (code >> 12U));
    text += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  }
  return text;
}

TEST(Haystack, WithoutBlanksCharactersAreUnits) {
  const std::string text = ideographs(100);
  EXPECT_EQ(UnitSupply(text).first(5), text.substr(0, 15));
  EXPECT_EQ(UnitSupply(text).first(102), text + " " + text.substr(0, 6));
  EXPECT_EQ(UnitSupply("ab " + text + "\ncd").first_as_written(102), "ab " + text + "\ncd");
  EXPECT_TRUE(UnitSupply("a word, then " + text).is_cut());
  EXPECT_FALSE(UnitSupply("words and words of a text " + text.substr(0, 30)).is_cut());
  EXPECT_EQ(UnitSupply(text.substr(0, 30) + " b").first(2), text.substr(0, 30) + " b");  // a word of 30 bytes
}

TEST(Haystack, SentencesEndAtTheirScriptsFullStops) {
  EXPECT_THAT(sentences_of("今天好。他说：“是吗？”不！ End. x"),
              ElementsAre("今天好。", "他说：“是吗？”", "不！", "End.", "x"));
  EXPECT_THAT(parts_of("One two. Three four. Five."), ElementsAre("One two.", "Three four.", "Five."));
  EXPECT_THAT(parts_of("One. two three four five"), ElementsAre("One.", "two", "three", "four", "five"));
}

/// Returns the position of a prompt's needle among the text before and after it.
double depth_of(const TaskSample& sample, const std::string& needle, const std::string& first) {
  const std::size_t begin = sample.context.find(first), at = sample.context.find(needle);
  EXPECT_NE(at, std::string::npos);
  return static_cast<double>(at - std::min(begin, at)) /
         static_cast<double>(sample.context.size() - std::min(begin, at) - needle.size());
}

TEST(TaskGenerators, FillTheLengthFromAnyHaystack) {
  const test::FourByteTokenizer tokenizer;
  const std::vector<double> depths{0, 0.5, 1};
  std::string letters;
  for (std::size_t n = 0; n < 3000; ++n) letters += "abcdefgh"[n * n % 8];
  for (const std::string& hay : {ideographs(3000), ideographs(7), letters, std::string("word"), std::string("é"),
                                 std::string("🙂🙃"), ideographs(40) + "\n" + ideographs(12) + " two words"})
    for (const TaskDefinition* task : task_definitions()) {
      constexpr std::size_t kLength = 2048;
      for (const TaskSample& sample :
           task->make({.tokenizer = tokenizer, .length = kLength, .haystack = hay, .depths = depths})) {
        const std::size_t tokens = tokenizer.encode(sample.prompt()).size() + task->answer_tokens;
        EXPECT_LE(tokens, kLength) << task->name;
        // RULER's own steps are 500 words of a text, 25 lines of noise, words …
        const bool is_exact = task->has_depths || (task->needs_haystack && UnitSupply(hay).is_cut());
        EXPECT_GE(tokens, is_exact ? kLength - kLength / 20 : kLength / 3) << task->name << ": " << hay.substr(0, 12);
      }
    }
}

TEST(TaskGenerators, NeedlesLieAtTheirDepthWithoutSentences) {
  const test::FourByteTokenizer tokenizer;
  const std::vector<double> depths{0, 0.25, 0.5, 1};
  for (const std::string& hay : {ideographs(3000), std::string("no full stop at all here"), ideographs(20) + "。"})
    for (const TaskSample& sample :
         kNeedleTask.make({.tokenizer = tokenizer, .length = 2048, .haystack = hay, .depths = depths})) {
      const std::size_t at = sample.context.find("One of the special");
      const std::string needle = sample.context.substr(at, sample.context.find('.', at) + 1 - at);
      EXPECT_NEAR(depth_of(sample, needle, hay.substr(0, 3)), *sample.depth, 0.02) << hay.substr(0, 9);
    }
}

TEST(TaskGenerators, OneLongLineIsNoMoreWorkThanManyWords) {
  const test::FourByteTokenizer tokenizer;
  const std::string line(std::size_t{4} << 20U, 'x');
  const auto started = std::chrono::steady_clock::now();
  for (const TaskDefinition& task : kRulerNeedleTasks)
    (void)task.make({.tokenizer = tokenizer, .length = 4096, .haystack = line});
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));  // takes minutes if a line is a word
}

}  // namespace
}  // namespace kvs
