// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/layer_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// `count` layers with candidates 0 … most, whose sizes are `unit` times their numbers.
LayerBudget ladders(std::size_t count, std::size_t most, std::size_t budget, std::size_t unit = 1) {
  std::vector<LayerCandidate> ladder;
  for (std::size_t n = 0; n <= most; ++n) {
    ladder.push_back({n * unit, {}});
    if (n > 0) ladder.back().steps.push_back(n - 1);
    if (n < most) ladder.back().steps.push_back(n + 1);
  }
  return {std::vector(count, ladder), budget, 100, 100};
}

/// Layers of weight w lose w · 2⁻ⁿ with candidate n; a second document is harder by a constant.
JointLoss halving(std::vector<double> weights) {
  return [weights = std::move(weights)](const LayerChoice& choice) {
    double sum = 0;
    for (std::size_t layer = 0; layer < choice.size(); ++layer)
      sum += weights[layer] / static_cast<double>(1 << choice[layer]);
    return std::vector{sum, sum + 7};
  };
}

TEST(AllocateLayers, ReachesTheOptimumOfAnAdditiveConvexLoss) {
  // The marginal gains of 16 are 8, 4, 2, 1, of 4: 2, 1, of 1: 1/2. The six best are 8, 4, 2, 2, 1 and 1.
  const auto found = allocate_layers(ladders(3, 6, 6), {2, 2, 2}, halving({16, 4, 1}));
  EXPECT_THAT(found.choice, ElementsAre(4, 2, 0));
  EXPECT_DOUBLE_EQ(found.loss, 1 + 1 + 1 + 3.5);
}

TEST(AllocateLayers, LeavesWhatIsBestAsItIs) {
  const auto found = allocate_layers(ladders(3, 4, 6), {2, 2, 2}, halving({3, 3, 3}));
  EXPECT_THAT(found.choice, ElementsAre(2, 2, 2));
  EXPECT_DOUBLE_EQ(found.loss, 2.25 + 3.5);
}

TEST(AllocateLayers, SpendsWhatTheStartLeaves) {
  EXPECT_THAT(allocate_layers(ladders(2, 4, 5), {2, 2}, halving({1, 3})).choice, ElementsAre(2, 3));
}

TEST(AllocateLayers, SeveralLayersPayForOneLargeStep) {
  LayerBudget budget = ladders(3, 2, 6);
  budget.layers[0] = {{2, {1}}, {4, {}}};  // its only step costs as much as one step of each of the others frees
  const auto found = allocate_layers(budget, {0, 2, 2}, halving({100, 1, 1}));
  EXPECT_THAT(found.choice, ElementsAre(1, 1, 1));
}

TEST(AllocateLayers, AnExchangeFindsWhatMarginalLossesHide) {
  // More for layer 0 helps only once layer 2 has less, which alone costs 1; layers 1 and 3 always want their current
  // size. Marginal losses promise nothing: 0 − … + 1.
  const JointLoss loss = [](const LayerChoice& choice) {
    double sum = choice[2] == 0 ? (choice[0] == 2 ? -3 : 1) : choice[0] == 0 ? 5 : 0;
    for (const std::size_t layer : {1U, 3U}) sum += choice[layer] == 1 ? 0 : choice[layer] == 0 ? 4 : 2;
    return std::vector{sum};
  };
  LayerBudget budget = ladders(4, 2, 4);
  EXPECT_THAT(allocate_layers(budget, {1, 1, 1, 1}, loss).choice, ElementsAre(2, 1, 0, 1));
  budget.exchanges = 0;
  EXPECT_THAT(allocate_layers(budget, {1, 1, 1, 1}, loss).choice, ElementsAre(1, 1, 1, 1));
}

TEST(AllocateLayers, TradesThatHarmEachOtherAreCutDownToThoseThatHelp) {
  // Each of the two steps up alone gains 2 and 1, both together lose 4.
  const JointLoss loss = [](const LayerChoice& choice) {
    return std::vector{choice[0] == 1 ? (choice[1] == 1 ? 4.0 : -2.0) : choice[1] == 1 ? -1.0 : 0.0};
  };
  const auto found = allocate_layers(ladders(2, 1, 2), {0, 0}, loss);
  EXPECT_THAT(found.choice, ElementsAre(1, 0));
  EXPECT_DOUBLE_EQ(found.loss, -2);
}

TEST(AllocateLayers, StepsThatKeepTheSizeNeedNoPayment) {
  LayerBudget budget = ladders(1, 1, 3);
  budget.layers[0] = {{3, {1}}, {3, {0}}};
  EXPECT_THAT(allocate_layers(budget, {0}, halving({1})).choice, ElementsAre(1));
}

TEST(AllocateLayers, StaysWithinTheBudgetAndCountsWhatItMeasures) {
  const LayerBudget budget = ladders(5, 3, 17, 2);
  std::size_t measured = 0;
  const JointLoss loss = halving({9, 1, 4, 16, 25});
  const auto found = allocate_layers(budget, {1, 1, 1, 1, 1}, [&](const LayerChoice& choice) {
    ++measured;
    return loss(choice);
  });
  EXPECT_EQ(found.measured, measured);
  EXPECT_THAT(found.choice, ElementsAre(2, 0, 1, 2, 3));
}

TEST(AllocateLayers, RefusesABudgetThatNothingMeets) {
  try {
    allocate_layers(ladders(2, 3, 3, 4), {1, 1}, halving({1, 1}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("found 3, expected at least the uniform split's 8"));
  }
}

}  // namespace
}  // namespace kvs
