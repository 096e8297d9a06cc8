// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/calibrate_fixture.h"
#include "tests/cli/letters_tokenizer.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class TransformProgram : public CalibratePrograms {
 protected:
  Outcome transform(const std::string& out, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--sinks", "1", "--recent", "2", "--out", folder_ / out});
    return run("kvcalibrate", with_text("transform", more));
  }
};

TEST_F(TransformProgram, CalibratesWhatEvalRuns) {
  const Outcome made = transform("half.json", {"--budget", "50%"});
  ASSERT_EQ(made.status, 0) << made.err;
  ASSERT_EQ(transform("third.json", {"--budget", "30%", "--reuse-sensitivities", folder_ / "half.json"}).status, 0);
  const Outcome over =
      transform("half.json", {"--budget", "30%", "--reuse-sensitivities", folder_ / "half.json", "--force"});
  EXPECT_EQ(over.status, 2);
  EXPECT_THAT(over.err, HasSubstr("half.json: the output is the input"));
  expect_valid("half.json");
  expect_valid("third.json");
  EXPECT_EQ(config("half.json").at("calibration").at("costs"), config("third.json").at("calibration").at("costs"));
  const auto kl = [&](const char* name) { return evaluated({"--config", folder_ / name}).at("kl").get<double>(); };
  EXPECT_LT(kl("half.json"), 0.01);
  EXPECT_GT(kl("third.json"), kl("half.json"));
}

TEST_F(TransformProgram, ABudgetIsWhatEvalMeasures) {
  ASSERT_EQ(transform("c.json", {"--budget", "40%", "--outliers", "0"}).status, 0);
  const Json budget = config("c.json").at("calibration").at("budget");
  auto words = with_text("eval", {"--config", folder_ / "c.json", "--json"});
  const Json report = parse_json(run("kvcalibrate", words).out, "eval");
  const double bytes = report.at("bytes_per_token").get<double>() * budget.at("window").get<double>();
  EXPECT_LE(bytes, budget.at("bytes").get<double>());
  EXPECT_GE(bytes, 0.8 * budget.at("bytes").get<double>());  // two outliers a layer are counted
}

TEST_F(TransformProgram, BytesThatAllSequencesShareAreShownWhereverBytesAre) {
  ASSERT_EQ(transform("c.json", {"--budget", "60%"}).status, 0);
  const std::size_t shared = config("c.json").at("quality").at("shared_bytes");
  ASSERT_GT(shared, 0U);
  std::ofstream(folder_ / "model/tokenizer.json") << dump_json(letters_tokenizer());
  std::ofstream(folder_ / "q.jsonl")
      << R"({"context": "ice is cold.", "question": "what is cold?", "answers": ["ice"]})";
  const std::vector<std::vector<std::string>> commands{{"generate", "--prompt", "the cat", "--max-new-tokens", "4"},
                                                       {"eval", "--task", folder_ / "q.jsonl"}};
  for (std::vector<std::string> words : commands) {
    words.insert(words.end(), {"--model", folder_ / "model", "--config", folder_ / "c.json"});
    const Outcome told = run("kvcalibrate", words);
    ASSERT_EQ(told.status, 0) << told.err;
    EXPECT_THAT(told.out + told.err, HasSubstr(" MB that all sequences share")) << words[0];
    words.push_back("--json");
    EXPECT_EQ(parse_json(run("kvcalibrate", words).out, words[0]).at("shared_bytes"), shared);
  }
  const Outcome whole = run("kvcalibrate", {"eval", "--task", folder_ / "q.jsonl", "--prefill", "context", "--model",
                                            folder_ / "model", "--config", folder_ / "c.json"});
  EXPECT_EQ(whole.status, 2);
  EXPECT_THAT(whole.err, HasSubstr("--prefill: found context, expected stepwise with a config of transform"));
}

TEST_F(TransformProgram, RowsByHeadAreATransformToo) {
  ASSERT_EQ(transform("layer.json", {"--budget", "60%"}).status, 0);
  const Outcome made = transform("head.json", {"--budget", "60%", "--rows", "head"});
  ASSERT_EQ(made.status, 0) << made.err;
  expect_valid("head.json");
  const Json budget = config("head.json").at("calibration").at("budget");
  const Json layer = evaluated({"--config", folder_ / "layer.json"}),
             head = evaluated({"--config", folder_ / "head.json"});
  EXPECT_GT(head.at("kl"), layer.at("kl"));
  EXPECT_LT(head.at("kl").get<double>(), 0.05);
  const double bytes = head.at("bytes_per_token").get<double>() * budget.at("window").get<double>();
  EXPECT_LE(bytes, budget.at("bytes").get<double>());
  const Outcome outliers = transform("x.json", {"--budget", "60%", "--rows", "head", "--outliers", "0.1"});
  EXPECT_EQ(outliers.status, 2);
  EXPECT_THAT(outliers.err, HasSubstr("--outliers: found "));
}

TEST_F(TransformProgram, LayersThatShareARowKeepTheBudget) {
  for (const std::vector<std::string>& form :
       std::vector<std::vector<std::string>>{{"--layers-per-group", "2"},
                                             {"--predict", "embedding"},
                                             {"--layers-per-group", "9", "--predict", "embedding"}}) {
    std::vector<std::string> options{"--budget", "40%", "--force"};
    options.insert(options.end(), form.begin(), form.end());
    const Outcome made = transform("c.json", options);
    ASSERT_EQ(made.status, 0) << made.err;
    expect_valid("c.json");
    EXPECT_EQ(config("c.json").at("parameters").contains("groups"), form.front() == "--layers-per-group");
    const Json budget = config("c.json").at("calibration").at("budget");
    const Json report = evaluated({"--config", folder_ / "c.json"});
    const double bytes = report.at("bytes_per_token").get<double>() * budget.at("window").get<double>();
    EXPECT_LE(bytes, budget.at("bytes").get<double>());
    EXPECT_LT(report.at("kl").get<double>(), 0.05);
  }
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"--layers-per-group", "2", "--rows", "head"}, {"--predict", "embedding", "--rows", "head"}}) {
    std::vector<std::string> options{"--budget", "40%"};
    options.insert(options.end(), wrong.begin(), wrong.end());
    const Outcome refused = transform("x.json", options);
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr(wrong.front() + ": found "));
  }
}

TEST_F(TransformProgram, StoresBlocksWithFewerBytesAtTheSameLoss) {
  ASSERT_EQ(transform("a.json", {"--budget", "40%"}).status, 0);
  const double kl = evaluated({"--config", folder_ / "a.json"}).at("kl").get<double>();
  const Outcome made = transform("s.json", {"--budget", "40%", "--form", "storage"});
  ASSERT_EQ(made.status, 0) << made.err;
  expect_valid("s.json");
  EXPECT_EQ(config("s.json").at("parameters").at("form"), "storage");
  const Json budget = config("s.json").at("calibration").at("budget");
  const Json report = evaluated({"--config", folder_ / "s.json"});
  const double bytes = report.at("bytes_per_token").get<double>() * budget.at("window").get<double>();
  EXPECT_NEAR(bytes, budget.at("bytes").get<double>(), 0.1 * budget.at("bytes").get<double>());
  EXPECT_LT(report.at("kl").get<double>(), kl);
  const Outcome few = transform("few.json", {"--budget", "40%", "--form", "storage", "--coefficients", "10"});
  ASSERT_EQ(few.status, 0) << few.err;
  expect_valid("few.json");
  const auto shared = [&](const std::string& name) { return config(name).at("quality").at("shared_bytes"); };
  EXPECT_LT(shared("few.json"), shared("s.json"));
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--form", "storage", "--rows", "head"},
                                             {"--outliers", "0.1", "--form", "storage"},
                                             {"--coefficients", "10"}}) {
    std::vector<std::string> options{"--budget", "40%"};
    options.insert(options.end(), wrong.begin(), wrong.end());
    const Outcome refused = transform("x.json", options);
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr(wrong.front() + ": "));
  }
}

TEST_F(TransformProgram, KilledAndResumedInTheStorageFormIsIdentical) {
  expect_resumed_is_identical("transform", {"--budget", "40%", "--form", "storage", "--layers-per-group", "2"});
}

TEST_F(TransformProgram, KilledAndResumedIsIdentical) {
  expect_resumed_is_identical("transform", {"--budget", "30%", "--recent", "2"});
}

TEST_F(TransformProgram, KilledAndResumedWithGroupsIsIdentical) {
  expect_resumed_is_identical("transform", {"--budget", "40%", "--layers-per-group", "2", "--predict", "embedding"});
}

TEST_F(TransformProgram, OneConfigTwice) {
  ASSERT_EQ(transform("a.json", {"--budget", "30%"}).status, 0);
  ASSERT_EQ(transform("b.json", {"--budget", "30%"}).status, 0);
  EXPECT_EQ(slurp(folder_ / "a.safetensors"), slurp(folder_ / "b.safetensors"));
}

TEST_F(TransformProgram, RefusesWhatCannotBe) {
  const Outcome small = transform("x.json", {"--budget", "2%"});
  EXPECT_EQ(small.status, 2);
  EXPECT_THAT(small.err, HasSubstr("--budget: found "));
  EXPECT_THAT(small.err, HasSubstr("expected at least "));
  ASSERT_EQ(transform("c.json", {"--budget", "30%"}).status, 0);
  Json one_layer = config("c.json");
  for (Json* const list : {&one_layer["parameters"]["layers"], &one_layer["parameters"]["code_bytes"],
                           &one_layer["parameters"]["thresholds"], &one_layer["calibration"]["costs"]["keys"],
                           &one_layer["calibration"]["costs"]["values"]})
    list->erase(0);
  std::ofstream(folder_ / "one.json") << one_layer.dump();
  expect_valid("one.json");
  const Outcome costs = transform("x.json", {"--budget", "30%", "--reuse-sensitivities", folder_ / "one.json"});
  EXPECT_EQ(costs.status, 2) << costs.err;
  EXPECT_THAT(costs.err, HasSubstr("--reuse-sensitivities: found a config of "));
  write_tiny_model(folder_ / "other", TinyKind::kNormed);
  const Outcome other = run("kvcalibrate", with_text("eval", {"--config", folder_ / "c.json"}, "other"));
  EXPECT_EQ(other.status, 7) << other.err;
  const Outcome set = run("kvcalibrate", with_text("eval", {"--config", folder_ / "c.json", "--set", "sinks=3"}));
  EXPECT_EQ(set.status, 2) << set.err;
  std::ofstream(folder_ / "c.safetensors", std::ios::app) << ' ';
  EXPECT_EQ(run("kvcalibrate", {"validate", folder_ / "c.json"}).status, 3);
}

}  // namespace
}  // namespace kvs::testing
