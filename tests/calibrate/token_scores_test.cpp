// SPDX-License-Identifier: Apache-2.0
#include "calibrate/lagkv/token_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/analyzers/memory_source.h"

namespace kvs {
namespace {

/// Two channels that are 0 and 1 apart everywhere, except in some tokens `apart` times as far: these tokens differ
/// most.
MemorySource source_with(std::size_t tokens, const std::function<double(std::size_t head, std::size_t token)>& apart) {
  return {1, 2, tokens, 2,
          [apart](std::size_t, std::size_t, StateKind, std::size_t head, std::size_t token, std::size_t channel) {
            // The range of both channels over any two tokens is [0, 1]: even tokens (0, 0), odd ones (1, 1).
            const auto base = static_cast<double>(token % 2);
            return static_cast<float>(channel == 0 ? base + apart(head, token) : base);
          }};
}

TEST(TokenScores, OfAPartitionAreThoseOfTheFormula) {
  // S = 1, L = 2, 6 tokens: partitions [1, 3) and [3, 5), of which the last stays; token 5 is the remainder.
  MemorySource source = source_with(6, [](std::size_t, std::size_t token) { return token == 1 ? 2.0 : 0.0; });
  const std::vector<std::size_t> layers{0, 4};
  const TokenScores scores = score_tokens(source, 0, layers, {.sinks = 1, .lag = 2, .ratio = 0.5});
  EXPECT_EQ(scores.first, 1U);
  EXPECT_EQ(scores.tokens, 2U);
  // Token 1 scales to (3, 1): unbiased deviation √2; token 2 to (0, 0): 0. K and V alike: 2 e^√2/(e^√2 + 1), times L/2.
  const double odds = std::exp(std::sqrt(2.0));
  for (const std::size_t layer : {0, 1})
    for (const std::size_t head : {0, 1}) {
      EXPECT_NEAR(scores.row(layer, head)[0], 2 * odds / (odds + 1), 1e-12);
      EXPECT_NEAR(scores.row(layer, head)[1], 2 / (odds + 1), 1e-12);
      EXPECT_TRUE(scores.is_kept(layer, head, 0));
      EXPECT_FALSE(scores.is_kept(layer, head, 1));
    }
}

TEST(TokenScores, HeadsOverlapAsFarAsTheyKeepTheSame) {
  // L = 4 with half kept, one partition: head 0 keeps tokens 0 and 1, head 1 tokens 1 and 2.
  MemorySource source = source_with(
      8, [](std::size_t head, std::size_t token) { return token == 1 || token == (head == 0 ? 0U : 2U) ? 3.0 : 0.0; });
  const std::vector<std::size_t> layers{0};
  const TokenScores scores = score_tokens(source, 0, layers, {.sinks = 0, .lag = 4, .ratio = 0.5});
  EXPECT_DOUBLE_EQ(head_overlap(scores, 0), 0.5);
  const LagkvOptions all{.sinks = 0, .lag = 4, .ratio = 1};
  EXPECT_DOUBLE_EQ(head_overlap(score_tokens(source, 0, layers, all), 0), 1);
}

TEST(TokenScores, NeedTwoPartitions) {
  MemorySource source = source_with(8, [](std::size_t, std::size_t) { return 0.0; });
  const std::vector<std::size_t> layers{0};
  try {
    score_tokens(source, 0, layers, {.sinks = 1, .lag = 4});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("found 8 tokens, expected at least S + 2L = 9"));
  }
}

}  // namespace
}  // namespace kvs
