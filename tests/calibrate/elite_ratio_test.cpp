// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "calibrate/elitekv/ratio.h"
#include "calibrate/elitekv/report.h"
#include "core/error.h"

namespace kvs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

PerplexitySum sum_of(double first, double second) {
  PerplexitySum sum;
  sum.add(first, 10);
  sum.add(second, 10);
  return sum;
}

TEST(EliteTrial, HasTheMeansOfItsDocumentsAndTheirError) {
  EliteTrial trial;
  measure_trial(trial, [] { return sum_of(20, 40); });
  EXPECT_DOUBLE_EQ(trial.nll, 3);
  EXPECT_EQ(trial.losses, (std::vector<double>{2, 4}));
  EXPECT_DOUBLE_EQ(trial.nll_error, 1);  // a deviation of sqrt(2) over sqrt(2)
}

TEST(EliteTrial, ThatMeetsNaNEndsNeitherTheRunNorIsItMeasured) {
  EliteTrial trial;
  measure_trial(trial, []() -> PerplexitySum { throw Error(ErrorCode::kData, "layer 3", "found NaN"); });
  EXPECT_FALSE(trial.is_finite());
  EXPECT_TRUE(trial.losses.empty());
  measure_trial(trial, [] { return sum_of(std::nan(""), 1); });
  EXPECT_FALSE(trial.is_finite());
  const auto out_of_memory = []() -> PerplexitySum { throw Error(ErrorCode::kEnvironment, "memory", "ran out"); };
  EXPECT_THROW(measure_trial(trial, out_of_memory), Error);
}

TEST(EliteSummary, GivesEachTrialItsErrorOrSaysThatItMetNaN) {
  EliteConfig config;
  config.layers = {0};
  config.r = 1;
  config.picks = {{{{0}, {}}}};
  config.trials.resize(2);
  measure_trial(config.trials[0], [] { return sum_of(20, 40); });
  measure_trial(config.trials[1], []() -> PerplexitySum { throw Error(ErrorCode::kData, "layer 3", "found NaN"); });
  ModelConfig model;
  model.layer.assign(1, {.attention = {.query_heads = 1, .kv_heads = 1, .head_dim = 8}, .feed_forward = {}});
  const std::string text = elite_summary(config, model);
  // e^3 = 20.086, times the error of 1; the full cache's NLL is 0.
  EXPECT_THAT(text, AllOf(HasSubstr("20.086 ± 20"), HasSubstr("NaN or infinity")));
}

}  // namespace
}  // namespace kvs
