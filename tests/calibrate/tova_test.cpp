// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/calibrate/weighed_tokens.h"

namespace kvs {
namespace {

using Read = std::vector<std::vector<std::size_t>>;

TEST(TovaCache, DropsTheTokenThatTheLastQueryReadsLeastInAllHeadsTogether) {
  // The query of token 2 gives tokens 0, 1, 2 the weights 1/8, 6/8, 1/8 in head 0 and 5/10, 1/10, 4/10 in head 1:
  // 0.625, 0.85 and 0.525 together. Token 2 goes, although head 0 alone would drop token 0 and head 1 token 1.
  const auto cache = test::layer_cache("tova", {"cache_size=3"});
  test::WeighedTokens tokens(*cache, {{1, 6, 1, 1, 1}, {5, 1, 4, 1, 1}});
  EXPECT_EQ(cache->max_tokens_per_call(), 2U);  // the token that fills the cache attends separately
  tokens.feed(3);
  EXPECT_EQ(tokens.feed_and_see(), (Read{{0, 1, 3}, {0, 1, 3}}));
  EXPECT_EQ(cache->compressions(), 1U);
}

TEST(TovaCache, DropsTheOldestOfEqualOnesWhateverRowsTheyAreInAndWhateverEarlierQueriesRead) {
  const auto cache = test::layer_cache("tova", {"cache_size=4"});
  test::WeighedTokens tokens(*cache, {{9, 1, 2, 2, 1, 1, 1}});
  tokens.feed(4);
  EXPECT_EQ(tokens.feed_and_see(), (Read{{0, 2, 3, 4}}));  // token 3 is now in the row of token 1
  EXPECT_EQ(tokens.feed_and_see(), (Read{{2, 3, 4, 5}}));  // token 4 is now in the row of token 0
  EXPECT_EQ(tokens.feed_and_see(), (Read{{3, 4, 5, 6}}));
  EXPECT_EQ(cache->compressions(), 3U);
}

}  // namespace
}  // namespace kvs
