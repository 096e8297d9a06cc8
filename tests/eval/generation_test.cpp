// SPDX-License-Identifier: Apache-2.0
#include "eval/generation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/eval/tiny_model.h"
#include "tests/model/caches.h"

namespace kvs {
namespace {

TEST(Generation, IsTheMostProbableSuccessorEachTime) {
  TinyModel tiny;
  const auto prompt = TinyModel::tokens(20);
  Cache cache = test::cache_of(tiny.model->config(), "full");
  std::vector<std::int32_t> seen;
  const Generation made = generate(*tiny.decoder, cache, prompt, 12, [&](std::int32_t id) {
    seen.push_back(id);
    return true;
  });
  EXPECT_EQ(made.ids.size(), 12U);
  EXPECT_EQ(seen, made.ids);
  EXPECT_EQ(made.end.stored, (20 + 11) * 2 * tiny.model->config().cache_values_per_token());  // the last is not read
  auto text = prompt;
  for (const std::int32_t id : made.ids) {
    ResidualStream pass = tiny.decoder->embed(text);
    tiny.decoder->advance(pass, tiny.model->config().layers());
    const std::size_t last = text.size() - 1;
    const auto logits = tiny.decoder->logits(pass, std::span(&last, 1));
    EXPECT_EQ(id, std::ranges::max_element(logits) - logits.begin());
    text.push_back(id);
  }
}

TEST(Generation, CompressesWhatItKeepsOnTheWay) {
  TinyModel tiny;
  Cache cache = test::cache_of(tiny.model->config(), "dropping", {"cache_size=16"});
  const Generation made = generate(*tiny.decoder, cache, TinyModel::tokens(20), 12, [](std::int32_t) { return true; });
  EXPECT_EQ(made.compressions, 3U);  // N = 12, L = 6: before tokens 16, 22 and 28 of 31
  EXPECT_EQ(made.end.stored, 13 * 2 * tiny.model->config().cache_values_per_token());
}

TEST(Generation, EndsWhereItIsToldTo) {
  TinyModel tiny;
  Cache cache = test::cache_of(tiny.model->config(), "full");
  std::size_t left = 3;
  EXPECT_EQ(
      generate(*tiny.decoder, cache, TinyModel::tokens(20), 12, [&](std::int32_t) { return --left > 0; }).ids.size(),
      3U);
}

TEST(Generation, TheFirstTokenAfterAWholePrefillIsTheFullCaches) {
  TinyModel tiny;
  const auto prompt = TinyModel::tokens(40);
  const auto first = [&](Cache cache) {
    return generate(*tiny.decoder, cache, prompt, 1, [](std::int32_t) { return true; }).ids.front();
  };
  EXPECT_EQ(first(test::cache_of(tiny.model->config(), "lagkv",
                                 {"sinks=1", "lag=4", "ratio=0.25", "prefix=40", "prefill=whole"})),
            first(test::cache_of(tiny.model->config(), "full")));
}

}  // namespace
}  // namespace kvs
