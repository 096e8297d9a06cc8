// SPDX-License-Identifier: Apache-2.0
// The tokens that each cache reads for a token, from the mean of the values that queries of zeros give.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/calibrate/layer_harness.h"

namespace kvs {
namespace {

constexpr std::size_t kRowHeads = 2, kRowChannels = 16, kTextRows = 90;

/// Returns the tokens that a token reads, itself included, in a KV head.
using Reads = std::function<std::vector<std::size_t>(std::size_t head, std::size_t token)>;

struct States {
  std::vector<float> k = test::random_values(kRowHeads * kTextRows * kRowChannels, 1),
                     v = test::random_values(kRowHeads * kTextRows * kRowChannels, 2);
};

void expect_reads(LayerCache& cache, const Reads& reads) {
  const States states;
  test::LayerHarness layer(cache, kRowHeads, kRowChannels);
  for (std::size_t token = 0; token < kTextRows; ++token) {
    const std::vector<float> found = layer.feed(states.k, states.v, kTextRows, token);
    for (std::size_t head = 0; head < kRowHeads; ++head) {
      const auto tokens = reads(head, token);
      for (std::size_t channel = 0; channel < kRowChannels; ++channel) {
        double mean = 0;
        for (const std::size_t t : tokens) mean += double{states.v[(head * kTextRows + t) * kRowChannels + channel]};
        ASSERT_NEAR(found[head * kRowChannels + channel], mean / static_cast<double>(tokens.size()), 1e-6)
            << "token " << token << " head " << head;
      }
    }
  }
}

std::vector<std::size_t> range(std::size_t first, std::size_t last) {
  std::vector<std::size_t> tokens(last - first);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(FullCache, ReadsEveryToken) {
  const auto cache = test::layer_cache("full", {});
  expect_reads(*cache, [](std::size_t, std::size_t token) { return range(0, token + 1); });
  EXPECT_EQ(cache->bytes().stored, kTextRows * kRowHeads * kRowChannels * 2 * 2);
  EXPECT_EQ(cache->bytes().used, kTextRows * kRowHeads * kRowChannels * 2 * sizeof(float));
}

TEST(StreamingCache, ReadsTheSinksAndTheLastTokens) {
  const auto cache = test::layer_cache("streaming", {"cache_size=12", "sinks=3"});
  expect_reads(*cache, [](std::size_t, std::size_t token) {
    auto tokens = range(0, std::min<std::size_t>(3, token + 1));
    const auto last = range(std::max<std::size_t>(3, token < 8 ? 0 : token - 8), std::max<std::size_t>(token + 1, 3));
    tokens.insert(tokens.end(), last.begin(), last.end());
    return tokens;
  });
}

TEST(DroppingCache, KeepsTheLastSlotsWhenATokenFindsItFull) {
  const auto cache = test::layer_cache("dropping", {"cache_size=12", "sinks=2", "rope=post"});
  std::vector<std::size_t> slots;
  std::size_t fed = 0;
  expect_reads(*cache, [&](std::size_t, std::size_t token) {
    if (token < fed) return slots;  // the second head reads the same
    fed = token + 1;
    if (slots.size() == 12) slots.erase(slots.begin() + 2, slots.begin() + 7);  // N = 10, L = 5
    slots.push_back(token);
    return slots;
  });
  EXPECT_EQ(cache->compressions(), (kTextRows - 12 + 4) / 5);
}

}  // namespace
}  // namespace kvs
