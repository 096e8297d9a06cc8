// SPDX-License-Identifier: Apache-2.0
// Calibrations of methods to a byte budget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class BudgetPrograms : public CalibratePrograms {
 protected:
  std::vector<std::string> to_budget(const std::string& command, const std::string& budget,
                                     std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--budget", budget, "--out", folder_ / (command + ".json")});
    return with_text(command, more);
  }
  void expect_refused(const std::vector<std::string>& words, const std::string& problem) const {
    const Outcome refused = run("kvcalibrate", words);
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(problem));
  }
};

TEST_F(BudgetPrograms, GiveConfigsThatEvalRuns) {
  for (const std::string method : {"freqkv", "lagkv", "faedkv"}) {
    std::vector<std::string> more{"--holdout-windows", "1:", "--windows", "0:1"};
    if (method == "lagkv") more.insert(more.end(), {"--per-layer-rounds", "1"});
    if (method == "faedkv") more.insert(more.end(), {"--set", "prefix=28", "recent=4", "sinks=2", "chunks=4"});
    const Outcome made = run("kvcalibrate", to_budget(method, "75%", more));
    ASSERT_EQ(made.status, 0) << made.err;
    expect_valid(method + ".json");
    const Json found = config(method + ".json"), &allocation = found.at("calibration").at("allocation");
    EXPECT_EQ(found.at("parameters"), allocation.at("contenders").at(0).at("parameters"));
    EXPECT_EQ(allocation.at("held_documents"), 3);
    EXPECT_THAT(made.out, AllOf(HasSubstr(allocation.at("winner").get<std::string>()), HasSubstr("held out")));
    // 32 tokens, 32 values of K and of V in each of four layers, 2 bytes each.
    EXPECT_LE(allocation.at("contenders").at(0).at("bytes"), 3 * 32 * 4 * 32 * 2 / 4);
    const double ppl = perplexity({"--config", folder_ / (method + ".json"), "--windows", "1:"});
    EXPECT_NEAR(ppl, found.at("quality").at("ppl").get<double>(), 1e-4 * ppl) << method;
    EXPECT_FALSE(std::filesystem::exists(folder_ / (method + ".json.journal")));
    const Outcome again = run("kvcalibrate", to_budget(method, "75%", more));
    EXPECT_EQ(again.status, 7) << "another run's output";
  }
}

// What a config was chosen on says little of it: the advice names another text, cut as that one was.
TEST_F(BudgetPrograms, AdviseToMeasureOnAnotherTextInTheSameWindows) {
  const Outcome made = run("kvcalibrate", to_budget("lagkv", "75%", {"--bos", "off"}));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("next: kvcalibrate eval --model " + (folder_ / "model").string() +
                                  " --tokens-file OTHER.jsonl --window 32 --bos off --config "));
  EXPECT_THAT(made.out, ::testing::Not(HasSubstr("tokens.jsonl")));
}

TEST_F(BudgetPrograms, TakeBytesAndGivenParameters) {
  const Outcome made = run("kvcalibrate", to_budget("lagkv", "160B a token", {"--set", "type=int8_per_token_head"}));
  ASSERT_EQ(made.status, 0) << made.err;
  const Json parameters = config("lagkv.json").at("parameters");
  EXPECT_EQ(parameters.at("type"), "int8_per_token_head");
  EXPECT_LE(config("lagkv.json").at("calibration").at("allocation").at("contenders").at(0).at("bytes"), 160 * 32);
}

TEST_F(BudgetPrograms, KilledAndResumedIsIdentical) {
  const std::vector<std::string> how{"--per-layer-rounds", "1", "--windows", "0:1", "--holdout-windows", "1:"};
  auto again = how;
  again.push_back("--resume");
  ASSERT_EQ(run("kvcalibrate", to_budget("lagkv", "75%", how)).status, 0);
  const std::string whole = slurp(folder_ / "lagkv.json");
  std::mt19937 random(11);
  int killed = 0;
  for (int round = 0; round < 3; ++round) {
    std::filesystem::remove(folder_ / "lagkv.json");
    killed += run_with_kills("kvcalibrate", to_budget("lagkv", "75%", how), to_budget("lagkv", "75%", again), random);
    EXPECT_EQ(slurp(folder_ / "lagkv.json"), whole) << "round " << round;
  }
  EXPECT_GT(killed, 1);
  EXPECT_THAT(run("kvcalibrate", to_budget("lagkv", "75%", again)).out, HasSubstr("finished before"));
  again[1] = "2";
  EXPECT_EQ(run("kvcalibrate", to_budget("lagkv", "75%", again)).status, 7) << "another run's output";
}

TEST_F(BudgetPrograms, RefuseWhatCannotBe) {
  for (const char* budget : {"0", "-5%", "101%", "12 apples", "%", "nan"})
    expect_refused(to_budget("lagkv", budget), std::string("--budget: found '") + budget + "'");
  expect_refused(to_budget("lagkv", "5%"), "expected at least");
  expect_refused(to_budget("faedkv", "50%", {"--chunks", "4"}), "--chunks: cannot be combined with --budget");
  expect_refused(faedkv("x.json", {"--per-layer-rounds", "1"}), "--per-layer-rounds: needs --budget");
  expect_refused(to_budget("lagkv", "50%", {"--holdout-windows", "0:1"}), "expected none of --windows");
}

}  // namespace
}  // namespace kvs::testing
