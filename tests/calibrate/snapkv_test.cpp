// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/calibrate/weighed_tokens.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using Read = std::vector<std::vector<std::size_t>>;

TEST(SnapkvCache, KeepsTheWindowAndTheNeighbourhoodsThatItReadsMost) {
  // Sums over three neighbours of the five tokens before the window: 2, 7, 7, 7, 2 in head 0, where the first two of
  // the equal ones stay, and 2, 3, 3, 11, 10 in head 1. Both queries of the window keep these proportions.
  const auto cache = test::layer_cache("snapkv", {"prefix=7", "cache_size=4", "window=2", "kernel=3"});
  test::WeighedTokens tokens(*cache, {{1, 1, 5, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 9, 4, 1, 1, 1}});
  cache->begin_prefix(7);
  EXPECT_EQ(cache->max_tokens_per_call(), 5U);  // the window attends separately
  tokens.feed(7);
  cache->end_prefix(tokens.backend());
  EXPECT_EQ(tokens.feed_and_see(), (Read{{1, 2, 5, 6, 7}, {3, 4, 5, 6, 7}}));
  EXPECT_EQ(tokens.feed_and_see(), (Read{{1, 2, 5, 6, 7, 8}, {3, 4, 5, 6, 7, 8}}));
  EXPECT_EQ(cache->compressions(), 1U);
}

TEST(SnapkvCache, KeepsAPrefixThatFits) {
  const auto cache = test::layer_cache("snapkv", {"prefix=3", "cache_size=8", "window=2", "kernel=1"});
  test::WeighedTokens tokens(*cache, {{1, 1, 1, 1}});
  cache->begin_prefix(3);
  tokens.feed(3);
  cache->end_prefix(tokens.backend());
  EXPECT_EQ(tokens.feed_and_see(), (Read{{0, 1, 2, 3}}));
}

TEST(SnapkvCache, RefusesAWindowThatIsLongerThanThePrefix) {
  test::expect_error(ErrorCode::kUsage, "prefix: found 63, expected a whole number of at least 64", [&] {
    test::layer_cache("snapkv", {"prefix=63", "cache_size=80", "window=64"});
  });
}

}  // namespace
}  // namespace kvs
