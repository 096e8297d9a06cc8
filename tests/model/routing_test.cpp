// SPDX-License-Identifier: Apache-2.0
#include "model/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kvs {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::IsEmpty;

/// Logits whose softmax is `scores`, which sum to 1.
std::vector<float> logits_of(const std::vector<float>& scores) {
  std::vector<float> logits;
  logits.reserve(scores.size());
  for (const float score : scores) logits.push_back(std::log(score) + 3);
  return logits;
}

auto near(float value) { return FloatNear(value, 1e-6F); }

TEST(Routing, SoftmaxScoresOfTheChosenAreTheWeights) {
  const ExpertsConfig experts{.count = 4, .chosen = 2, .d_ff = 1};
  const auto routed = route(experts, logits_of({0.1F, 0.4F, 0.2F, 0.3F}));
  ASSERT_EQ(routed.size(), 4U);
  EXPECT_THAT(routed[1].weights, ElementsAre(near(0.4F)));
  EXPECT_THAT(routed[3].weights, ElementsAre(near(0.3F)));
  EXPECT_THAT(routed[0].rows, IsEmpty());
  EXPECT_THAT(routed[2].rows, IsEmpty());
}

TEST(Routing, NormalisedWeightsSumToOne) {
  const ExpertsConfig experts{.count = 4, .chosen = 2, .d_ff = 1, .normalised = true};
  const auto routed = route(experts, logits_of({0.1F, 0.4F, 0.2F, 0.3F}));
  EXPECT_THAT(routed[1].weights, ElementsAre(near(4.0F / 7)));
  EXPECT_THAT(routed[3].weights, ElementsAre(near(3.0F / 7)));
}

TEST(Routing, AnyLowerSumCountsAsTheLeastOne) {
  ExpertsConfig experts{.count = 4, .chosen = 2, .d_ff = 1, .normalised = true, .least_sum = 0.8F};
  const auto logits = logits_of({0.1F, 0.4F, 0.2F, 0.3F});
  EXPECT_THAT(route(experts, logits)[1].weights, ElementsAre(near(0.5F)));
  experts.least_sum = 0.6F;
  EXPECT_THAT(route(experts, logits)[1].weights, ElementsAre(near(4.0F / 7)));
}

TEST(Routing, SigmoidScoresDoNotDependOnOtherExperts) {
  // σ(0) = 1/2, σ(ln 3) = 3/4, σ(−ln 3) = 1/4.
  const float log3 = std::log(3.0F);
  ExpertsConfig experts{.count = 3, .chosen = 2, .d_ff = 1, .scores = ExpertsConfig::Scores::kSigmoid};
  auto routed = route(experts, std::vector<float>{0, log3, -log3});
  EXPECT_THAT(routed[0].weights, ElementsAre(near(0.5F)));
  EXPECT_THAT(routed[1].weights, ElementsAre(near(0.75F)));
  EXPECT_THAT(routed[2].rows, IsEmpty());
  experts.normalised = true;
  routed = route(experts, std::vector<float>{0, log3, -log3});
  EXPECT_THAT(routed[0].weights, ElementsAre(near(0.4F)));
  EXPECT_THAT(routed[1].weights, ElementsAre(near(0.6F)));
}

TEST(Routing, TokensAreGroupedByExpert) {
  const ExpertsConfig experts{.count = 3, .chosen = 1, .d_ff = 1, .normalised = true};
  const auto routed = route(experts, std::vector<float>{1, 0, 0, 0, 0, 1, 2, 0, 1});
  EXPECT_THAT(routed[0].rows, ElementsAre(0, 2));
  EXPECT_THAT(routed[0].weights, ElementsAre(near(1), near(1)));
  EXPECT_THAT(routed[1].rows, IsEmpty());
  EXPECT_THAT(routed[2].rows, ElementsAre(1));
}

TEST(Routing, OfEqualScoresTheFirstExpertsAreChosen) {
  const ExpertsConfig experts{.count = 5, .chosen = 2, .d_ff = 1};
  const auto routed = route(experts, std::vector<float>{0, 1, 0, 0, 0});
  EXPECT_THAT(routed[0].rows, ElementsAre(0));
  EXPECT_THAT(routed[1].rows, ElementsAre(0));
  for (const std::size_t other : {2U, 3U, 4U}) EXPECT_THAT(routed[other].rows, IsEmpty());
}

TEST(Routing, AllExpertsMayBeChosen) {
  const ExpertsConfig experts{.count = 3, .chosen = 3, .d_ff = 1};
  const auto routed = route(experts, logits_of({0.5F, 0.2F, 0.3F}));
  EXPECT_THAT(routed[0].weights, ElementsAre(near(0.5F)));
  EXPECT_THAT(routed[1].weights, ElementsAre(near(0.2F)));
  EXPECT_THAT(routed[2].weights, ElementsAre(near(0.3F)));
}

TEST(Routing, LargeLogitsDoNotOverflow) {
  const ExpertsConfig experts{.count = 2, .chosen = 1, .d_ff = 1};
  const auto routed = route(experts, std::vector<float>{1000, 1000 - std::log(3.0F)});
  ASSERT_THAT(routed[0].weights, testing::SizeIs(1));
  EXPECT_NEAR(routed[0].weights[0], 0.75F, 1e-4F);
}

TEST(Routing, ABiasChangesTheChoiceButNotTheWeights) {
  const ExpertsConfig experts{.count = 3, .chosen = 1, .d_ff = 1, .scale = 2};
  const std::vector<float> bias{0, 0, 1};
  const auto routed = route(experts, logits_of({0.5F, 0.3F, 0.2F}), bias);
  EXPECT_THAT(routed[0].rows, IsEmpty());
  EXPECT_THAT(routed[2].weights, ElementsAre(near(0.4F)));
}

TEST(Routing, ExpertsAreChosenInTheGroupsWithTheLargestPairs) {
  // Groups {0, 1, 2} and {3, 4, 5}: the largest score is in the first, the larger pair (0.45 > 0.4) in the second.
  const ExpertsConfig experts{.count = 6, .chosen = 2, .d_ff = 1, .groups = 2, .chosen_groups = 1};
  const auto routed = route(experts, logits_of({0.35F, 0.05F, 0.05F, 0.25F, 0.2F, 0.1F}));
  EXPECT_THAT(routed[0].rows, IsEmpty());
  EXPECT_THAT(routed[3].weights, ElementsAre(near(0.25F)));
  EXPECT_THAT(routed[4].weights, ElementsAre(near(0.2F)));
}

TEST(Routing, AGroupMayCountByItsLargestScoreAlone) {
  const ExpertsConfig experts{.count = 6, .chosen = 2, .d_ff = 1, .groups = 2, .chosen_groups = 1, .group_scores = 1};
  const auto routed = route(experts, logits_of({0.35F, 0.05F, 0.05F, 0.25F, 0.2F, 0.1F}));
  EXPECT_THAT(routed[0].weights, ElementsAre(near(0.35F)));
  EXPECT_THAT(routed[3].rows, IsEmpty());
}

TEST(Routing, GroupsMustHoldTheChosenExperts) {
  const auto problem = [](std::size_t groups, std::size_t chosen_groups) {
    return group_problem({.count = 6, .chosen = 3, .d_ff = 1, .groups = groups, .chosen_groups = chosen_groups});
  };
  EXPECT_EQ(problem(2, 1), "");
  EXPECT_NE(problem(4, 2), "");  // no divisor of 6
  EXPECT_NE(problem(2, 0), "");
  EXPECT_NE(problem(2, 3), "");
  EXPECT_NE(problem(3, 1), "");  // two experts for three
}

}  // namespace
}  // namespace kvs
