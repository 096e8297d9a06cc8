// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "calibrate/elitekv/config.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Three pairs on three documents: the second is the best; the third met NaN.
EliteConfig tried() {
  EliteConfig config;
  config.trials = {{.r = 2, .d_ckv = 8, .nll = 3.2, .nll_full = 2, .losses = {3.1, 3.2, 3.3}, .nll_error = 0.1},
                   {.r = 1, .d_ckv = 12, .nll = 3.0, .nll_full = 2, .losses = {2.9, 3.0, 3.1}, .nll_error = 0.2},
                   {.r = 4, .d_ckv = 4, .joint = false, .nll = kInfinity, .nll_full = 2}};
  return config;
}

TEST(EliteTrials, AreReadAsTheyWereWritten) {
  const Json config{{"calibration", elite_calibration(tried())}};
  const Json& last = config.at("calibration").at("trials").back();
  EXPECT_TRUE(last.at("nll_mean").is_null());
  EXPECT_THAT(last.at("error").get<std::string>(), HasSubstr("NaN or infinity"));
  const auto trials = read_elite_trials(config, "c.json");
  ASSERT_EQ(trials.size(), 3U);
  EXPECT_EQ(trials[1].r, 1U);
  EXPECT_EQ(trials[1].d_ckv, 12U);
  EXPECT_EQ(trials[1].nll, 3.0);
  EXPECT_EQ(trials[1].nll_error, 0.2);
  EXPECT_EQ(trials[1].nll_full, 2);
  EXPECT_FALSE(trials[2].joint);
  EXPECT_FALSE(trials[2].is_finite());
  EXPECT_TRUE(read_elite_trials({{"calibration", Json::object()}}, "c.json").empty());
}

TEST(EliteTrials, OfOlderProgramsHaveThePerplexityAlone) {
  Json config{{"calibration", elite_calibration(tried())}};
  for (Json& trial : config["calibration"]["trials"])
    for (const char* name : {"nll_mean", "nll_error", "nll_full"}) trial.erase(name);
  const auto trials = read_elite_trials(config, "c.json");
  EXPECT_NEAR(trials[0].nll, 3.2, 1e-12);
  EXPECT_NEAR(trials[0].nll_full, 2, 1e-12);
}

TEST(EliteTrials, ThatMetNaNAreNotChosenAndEndTheRunWhereAllDid) {
  EliteConfig config = tried();
  EXPECT_EQ(best_trial(config).r, 1U);
  // From 3.2 to 3.0 on each document: e^-0.2 - 1 with an interval of no width.
  EXPECT_THAT(trials_verdict(config), AllOf(HasSubstr("r 1, d_ckv 12 chosen, better than every other")));
  EXPECT_THAT(trials_verdict(config), Not(HasSubstr("r 4")));
  for (EliteTrial& trial : config.trials) trial.nll = kInfinity;
  test::expect_error(ErrorCode::kData, "found NaN or infinity with every pair of r and d_ckv",
                     [&] { (void)best_trial(config); });
}

}  // namespace
}  // namespace kvs
