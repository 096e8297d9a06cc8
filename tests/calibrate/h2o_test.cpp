// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/calibrate/weighed_tokens.h"

namespace kvs {
namespace {

using Read = std::vector<std::vector<std::size_t>>;

TEST(H2oCache, DropsTheOldTokenOfLeastMassInEachHead) {
  // In head 0 the queries of tokens 0, 1, 2 give token 0 1 + 1/7 + 1/8 = 1.27 and token 1 6/7 + 6/8 = 1.61. In head 1
  // token 0 has 1 + 1/2 + 1/4 = 1.75 and token 1 1/2 + 1/4 = 0.75. Token 2 is the recent one.
  const auto cache = test::layer_cache("h2o", {"cache_size=3", "recent=1"});
  test::WeighedTokens tokens(*cache, {{1, 6, 1, 3, 1}, {1, 1, 2, 1, 1}});
  tokens.feed(3);
  EXPECT_EQ(tokens.feed_and_see(), (Read{{1, 2, 3}, {0, 2, 3}}));
  // Token 3 adds 1/3 to each: 1.94 against 1/8 + 1/3, and 2.08 against 2/4 + 1/3.
  EXPECT_EQ(tokens.feed_and_see(), (Read{{1, 3, 4}, {0, 3, 4}}));
  EXPECT_EQ(cache->compressions(), 2U);
}

TEST(H2oCache, ForgetsTheMassOfWhatItDropped) {
  // Token 0 is dropped with 1 + 1/10 + 1/11 = 1.19 (token 1: 9/10 + 9/11 = 1.72), then token 2. When token 5 comes,
  // token 3 has 2 · 90/100, token 1 1.72 + 2 · 9/100 = 1.90. A row that kept its old mass would save token 3.
  const auto cache = test::layer_cache("h2o", {"cache_size=3", "recent=1"});
  test::WeighedTokens tokens(*cache, {{1, 9, 1, 90, 1, 1}});
  tokens.feed(5);
  EXPECT_EQ(tokens.feed_and_see(), (Read{{1, 4, 5}}));
}

TEST(H2oCache, DropsTheFirstOfEqualOnesWhateverRowsTheyAreIn) {
  const auto cache = test::layer_cache("h2o", {"cache_size=4", "recent=1"});
  test::WeighedTokens tokens(*cache, {{1, 0, 0, 0, 0, 0}});  // tokens 1, 2, 3 have no mass
  tokens.feed(4);
  EXPECT_EQ(tokens.feed_and_see(), (Read{{0, 2, 3, 4}}));  // token 3 is now in the row of token 1
  EXPECT_EQ(tokens.feed_and_see(), (Read{{0, 3, 4, 5}}));  // tokens 2 and 3 have 1/4 each
}

}  // namespace
}  // namespace kvs
