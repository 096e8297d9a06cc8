#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/error.h"
#include "io/digest.h"
#include "io/json.h"
#include "tasks/haystack.h"
#include "tasks/task.h"
#include "tests/tasks/four_bytes.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// By the programs that define the tasks (golden/make_tasks_golden.py).
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
  EXPECT_EQ(WordSupply("a b c").first(5), "a b c a b");
}

}  // namespace
}  // namespace kvs
