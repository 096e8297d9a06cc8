// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/calibrate/layer_harness.h"

namespace kvs {
namespace {

TEST(L2normCache, KeepsTheFirstOfTheShortestKeys) {
  // Three keys of equal length and a longer one: two of four stay.
  const std::vector<float> k{0.3F, 0.7F, 0.3F, 0.7F, 3, 4, 0.3F, 0.7F, 0, 0}, v{1, 0, 2, 0, 4, 0, 8, 0, 0, 0};
  const auto cache = test::layer_cache("l2norm", {"prefix=4", "ratio=0.5"});
  test::LayerHarness layer(*cache, 1, 2);
  cache->begin_prefix(4);
  for (std::size_t token = 0; token < 4; ++token) layer.feed(k, v, 5, token);
  cache->end_prefix(layer.backend());
  EXPECT_NEAR(layer.feed(k, v, 5, 4)[0], (1 + 2 + 0) / 3.0, 1e-6);  // and the token's own value, 0
}

}  // namespace
}  // namespace kvs
