// SPDX-License-Identifier: Apache-2.0
#include "eval/latency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caches/full.h"
#include "tests/eval/tiny_model.h"

namespace kvs {
namespace {

TEST(Latency, RatiosAreMediansWithinARepeat) {
  const LatencyPlan plan{.lengths = {8}, .decode = 2, .repeats = 3};
  const std::vector<TimedCache> caches{{"full", {}}, {"other", {}}};
  // The machine halves its speed in the second repeat; the other cache takes 2, 3 and 2 times as long to decode.
  const std::vector<std::vector<LatencyCell>> cells{
      {{{0.001, 0.002, 0.001}, {0.01, 0.02, 0.01}}, {{0.001, 0.002, 0.004}, {0.02, 0.06, 0.02}}}};
  const LatencyResult result = latency_result(plan, caches, cells);
  EXPECT_THAT(result.caches[0].decode_ms, ::testing::ElementsAre(10.0));
  EXPECT_THAT(result.caches[0].prefill_ratio, ::testing::ElementsAre(1.0));
  EXPECT_THAT(result.caches[1].decode_ms, ::testing::ElementsAre(20.0));
  EXPECT_THAT(result.caches[1].decode_ratio, ::testing::ElementsAre(2.0));
  EXPECT_THAT(result.caches[1].prefill_ratio, ::testing::ElementsAre(1.0));
  EXPECT_THAT(to_text(result), ::testing::HasSubstr("20 (× 2)"));
}

TEST(Latency, CachesTakeTurnsAndTheFirstRoundDoesNotCount) {
  TinyModel tiny;
  std::string order;
  std::vector<TimedCache> caches;
  for (const char name : {'a', 'b'})
    caches.push_back({std::string(1, name), [&tiny, &order, name] {
                        order += name;
                        std::vector<std::unique_ptr<LayerCache>> layers;
                        for (std::size_t n = 0; n < tiny.decoder->model().config().layers(); ++n)
                          layers.push_back(make_full_cache({}));
                        return Cache(std::move(layers));
                      }});
  std::size_t runs = 0;
  const auto cells =
      measure_latency(*tiny.decoder, TinyModel::tokens(20), caches, {.lengths = {8, 16}, .decode = 3, .repeats = 2},
                      [&](std::size_t done) { runs = done; });
  EXPECT_EQ(order, "abababababab");  // two lengths of three rounds
  EXPECT_EQ(runs, 12U);
  ASSERT_EQ(cells.size(), 2U);
  for (const auto& of_length : cells)
    for (const LatencyCell& cell : of_length) {
      ASSERT_EQ(cell.prefill.size(), 2U);
      ASSERT_EQ(cell.decode.size(), 2U);
      EXPECT_GT(cell.decode[0], 0);
    }
}

}  // namespace
}  // namespace kvs
