// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/text_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class TaskPrograms : public TextPrograms {
 protected:
  Outcome evaluate(const std::vector<std::string>& how) const {
    std::vector<std::string> words{"eval", "--model", folder_ / "model", "--quiet", "--threads", "1"};
    words.insert(words.end(), how.begin(), how.end());
    return run("kvcalibrate", words);
  }
  Json result(std::vector<std::string> how) const {
    how.push_back("--json");
    const Outcome outcome = evaluate(how);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? parse_json(outcome.out, "eval") : Json();
  }
  void refuse(int status, const std::vector<std::string>& how, const std::string& part) const {
    const Outcome outcome = evaluate(how);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
};

TEST_F(TaskPrograms, AskWithEveryKindOfCache) {
  const std::vector<std::string> needle{"--task",   "needle", "--lengths",       "600",
                                        "--depths", "0,100",  "--answer-tokens", "4"};
  const auto ask = [&](std::vector<std::string> how) {
    how.insert(how.begin(), needle.begin(), needle.end());
    return result(how);
  };
  const Json full = ask({"--method", "full"});
  EXPECT_EQ(full.at("questions"), 2);
  EXPECT_EQ(full.at("bytes_ratio"), 1.0);
  EXPECT_FALSE(full.contains("full"));
  EXPECT_EQ(full.at("fails_with_full_cache"), true);  // weights are random
  EXPECT_EQ(full.at("samples").at(1).at("depth"), 1.0);
  const std::vector<std::vector<std::string>> methods{
      {"--method", "streaming", "--set", "cache_size=64"},
      {"--method", "lagkv", "--set", "sinks=2", "lag=8", "ratio=0.25"},
      {"--method", "lagkv", "--set", "sinks=2", "lag=8", "ratio=0.25", "--prefill", "prompt"},
      {"--method", "snapkv", "--set", "cache_size=80"},
      {"--method", "l2norm", "--set", "ratio=0.25"}};
  for (const auto& method : methods) {
    const Json found = ask(method);
    ASSERT_TRUE(found.contains("full")) << method[1];
    EXPECT_EQ(found.at("full").at("log_likelihood"), full.at("log_likelihood")) << method[1];
    EXPECT_LT(found.at("bytes_ratio").get<double>(), 0.8) << method[1];
    EXPECT_NE(found.at("log_likelihood"), full.at("log_likelihood")) << method[1];
    EXPECT_TRUE(found.at("difference").contains("interval")) << method[1];
  }
  EXPECT_EQ(ask(methods[1]).at("prefill"), "stepwise");
  auto alone = methods[0];
  alone.insert(alone.end(), {"--reference", "none"});
  EXPECT_FALSE(ask(alone).contains("fails_with_full_cache"));
  EXPECT_EQ(ask(methods[2]).at("first_token_as_full"), 1.0);
  EXPECT_EQ(ask(methods[3]).at("prefill"), "context");
}

TEST_F(TaskPrograms, OutputsAreTheSameWheneverTheyAreMade) {
  const std::string out = folder_ / "needle.json";
  const std::vector<std::string> words{"--task",          "needle",   "--lengths", "500,600", "--depths",
                                       "0,50,100",        "--method", "streaming", "--set",   "cache_size=64",
                                       "--answer-tokens", "4",        "--out",     out};
  EXPECT_EQ(evaluate(words).status, 0);
  const std::string first = slurp(out);
  for (const char* ending : {"_map.svg", "_map.png"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / ("needle" + std::string(ending))));
  EXPECT_FALSE(std::filesystem::exists(out + ".journal"));
  refuse(7, words, "needle.json");
  auto again = words;
  again.emplace_back("--force");
  EXPECT_EQ(evaluate(again).status, 0);
  EXPECT_EQ(slurp(out).substr(0, 400), first.substr(0, 400));
  EXPECT_EQ(parse_json(slurp(out), out).at("samples"), parse_json(first, out).at("samples"));
}

TEST_F(TaskPrograms, AskWhatAFileAsks) {
  const std::string path = folder_ / "questions.jsonl";
  std::ofstream(path)
      << R"({"context": "ice is cold.", "question": "what is cold?", "answers": ["ice", "snow"]})" << '\n'
      << R"({"context": "ice is cold.", "question": "ice is", "choices": ["hot", "cold"], "answer": 1})";
  const Json found = result({"--task", path, "--method", "streaming", "--set", "cache_size=16"});
  EXPECT_EQ(found.at("questions"), 2);
  for (const char* member : {"accuracy", "f1", "log_likelihood", "full"}) EXPECT_TRUE(found.contains(member)) << member;
  EXPECT_EQ(found.at("text_sha256").size(), 1U);
  std::ofstream(path, std::ios::app) << "\n{\"context\": 1}\n";
  refuse(3, {"--task", path, "--method", "full"}, "questions.jsonl: line 3: /context: found 1");
  refuse(2, {"--task", path, "--method", "full", "--samples", "2"},
         "--samples: cannot be combined with a --task of a file's questions");
  refuse(2, {"--task", path, "--method", "full", "--out", path, "--force"}, "questions.jsonl");
}

TEST_F(TaskPrograms, HideThingsInTextsAsOtherCommandsReadThem) {
  std::filesystem::create_directory(folder_ / "texts");
  std::ofstream(folder_ / "texts/a.txt") << "A text of \xff words. And more.";
  std::ofstream(folder_ / "texts/b.jsonl") << "{\"text\": \"Words of a line.\"}\nno JSON\n";
  std::vector<std::string> words{"--task",          "needle", "--lengths", "500",  "--depths", "50",
                                 "--answer-tokens", "2",      "--method",  "full", "--text",   folder_ / "texts"};
  refuse(3, words, "a.txt: line 1, byte offset 10: found \\xff, expected UTF-8");
  words.insert(words.end(), {"--invalid-utf8", "replace"});
  refuse(3, words, "b.jsonl: line 2");
  words.emplace_back("--skip-bad-lines");
  EXPECT_EQ(result(words).at("text_sha256").size(), 2U);
  refuse(2, {"--task", "needle", "--method", "full", "--skip-bad-lines"}, "--skip-bad-lines: needs --text");
  refuse(2, {"--task", "ruler-vt", "--method", "full", "--invalid-utf8", "replace"},
         "--invalid-utf8: cannot be combined with --task ruler-vt");
  refuse(2, {"--task", "needle", "--method", "full", "--text", "-", "-"}, "--text: found - twice");
  const std::vector<std::string> read{"-c",
                                      "printf 'Some words. And more.' | " + std::string(KVS_BINARY_DIR "/kvcalibrate") +
                                          " eval --task needle --lengths 500 --depths 50 --answer-tokens 2" +
                                          " --method full --text - --quiet --model " + (folder_ / "model").string()};
  const Outcome standard_input = run("/bin/sh", read);
  EXPECT_EQ(standard_input.status, 0) << standard_input.err;
  const Outcome compared = run("kvcalibrate", {"compare", "--task", "needle", "--text", "-", "--out",
                                               folder_ / "c.json", "--model", folder_ / "model"});
  EXPECT_EQ(compared.status, 2);
  EXPECT_THAT(compared.err, HasSubstr("--text: found -, expected files: --task needle reads the text a second time"));
}

TEST_F(TaskPrograms, RefuseWhatCannotBeAsked) {
  refuse(4, {"--task", "needle", "--lengths", "4096", "--method", "full"},
         "found 4096 tokens, expected at most the model's context of 2048");
  const std::string path = folder_ / "long.jsonl";
  std::ofstream(path) << R"({"question": "why?", "answers": ["so"], "context": ")" << std::string(2100, 'a') << "\"}\n";
  refuse(4, {"--task", path, "--method", "full"}, "long.jsonl: question 1: found 2137 tokens");
  refuse(2, {"--task", "haystack", "--method", "full"}, "--task: found 'haystack', expected one of passkey, needle");
  refuse(2, {"--task", "ruler-niah-single-2", "--method", "full"}, "--task ruler-niah-single-2: needs --text");
  refuse(2, {"--task", "needle", "--lengths", "60", "--method", "full"}, "--lengths: found 60 tokens");
  refuse(2, {"--task", "needle", "--window", "60", "--method", "full"}, "--window: cannot be combined with --task");
  refuse(2, {"--task", "needle", "--method", "lagkv", "--set", "prefix=8"},
         "--set prefix: cannot be combined with --task");
  refuse(2, {"--task", "needle", "--method", "l2norm", "--prefill", "stepwise"}, "--prefill: found stepwise");
  refuse(2, {"--task", "needle", "--method", "streaming", "--set", "cache_size=8", "--prefill", "prompt"}, "--prefill");
  refuse(2, {"--tokens-file", folder_ / "tokens.jsonl", "--method", "full", "--depths", "5"}, "--depths: needs --task");
}

}  // namespace
}  // namespace kvs::testing
