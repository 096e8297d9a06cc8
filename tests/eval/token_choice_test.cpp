// SPDX-License-Identifier: Apache-2.0
#include "eval/token_choice.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace kvs {
namespace {

TEST(TokenChoice, WithoutATemperatureIsTheFirstLargestLogit) {
  EXPECT_EQ(choose_token(std::vector<float>{0, 3, 3, 1}, {}, {}), 1);
}

TEST(TokenChoice, FollowsTheSoftmaxOfTheLogits) {
  constexpr std::size_t kDraws = 20000;
  const std::vector<float> logits{0, 1, -1, 2};
  constexpr double kTemperature = 1.5;
  std::array<double, 4> counts{}, expected{};
  double sum = 0;
  for (std::size_t v = 0; v < 4; ++v) sum += expected[v] = std::exp(logits[v] / kTemperature);
  for (std::size_t n = 0; n < kDraws; ++n)
    counts[static_cast<std::size_t>(choose_token(logits, {kTemperature, 5}, {n % 100, n / 100}))] += 1;
  for (std::size_t v = 0; v < 4; ++v) {
    const double p = expected[v] / sum;
    EXPECT_NEAR(counts[v] / kDraws, p, 4 * std::sqrt(p * (1 - p) / kDraws)) << v;  // four standard errors
  }
}

TEST(TokenChoice, CloseDistributionsChooseTheSameToken) {
  // With the same numbers two distributions differ in at most 2 TV / (1 + TV) of the choices; here TV < 0.003.
  std::vector<float> logits(50), close(50);
  for (std::size_t v = 0; v < logits.size(); ++v) {
    logits[v] = static_cast<float>((v * 7) % 11) / 4;
    close[v] = logits[v] + (v % 2 == 0 ? 0.005F : -0.005F);
  }
  std::size_t other = 0;
  for (std::size_t n = 0; n < 4000; ++n)
    other += choose_token(logits, {1, 1}, {0, n}) == choose_token(close, {1, 1}, {0, n}) ? 0 : 1;
  EXPECT_LT(other, 4000 * 2 * 0.005 * 2);  // twice the bound
}

TEST(TokenChoice, DependsOnSeedSequenceAndPosition) {
  const std::vector<float> logits(1000, 0.0F);
  const auto chosen = choose_token(logits, {1, 1}, {0, 0});
  EXPECT_EQ(choose_token(logits, {1, 1}, {0, 0}), chosen);
  EXPECT_NE(choose_token(logits, {1, 2}, {0, 0}), chosen);
  EXPECT_NE(choose_token(logits, {1, 1}, {1, 0}), chosen);
  EXPECT_NE(choose_token(logits, {1, 1}, {0, 1}), chosen);
}

}  // namespace
}  // namespace kvs
