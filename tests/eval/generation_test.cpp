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
  const Generation made = generate(*tiny.decoder, cache, prompt, 12, [&](std::int32_t id) { seen.push_back(id); });
  EXPECT_EQ(made.ids.size(), 12U);
  EXPECT_EQ(seen, made.ids);
  EXPECT_EQ(made.end.stored, (20 + 11) * 2 * tiny.model->config().cache_values_per_token());  // the last is not read
  auto text = prompt;
  for (const std::int32_t id : made.ids) {
    ResidualStream pass = tiny.decoder->embed(text);
    tiny.decoder->advance(pass, tiny.model->config().layers);
    const std::size_t last = text.size() - 1;
    const auto logits = tiny.decoder->logits(pass, std::span(&last, 1));
    EXPECT_EQ(id, std::ranges::max_element(logits) - logits.begin());
    text.push_back(id);
  }
}

TEST(Generation, CompressesWhatItKeepsOnTheWay) {
  TinyModel tiny;
  Cache cache = test::cache_of(tiny.model->config(), "dropping", {"cache_size=16"});
  const Generation made = generate(*tiny.decoder, cache, TinyModel::tokens(20), 12, [](std::int32_t) {});
  EXPECT_EQ(made.compressions, 3U);  // N = 12, L = 6: before tokens 16, 22 and 28 of 31
  EXPECT_EQ(made.end.stored, 13 * 2 * tiny.model->config().cache_values_per_token());
}

}  // namespace
}  // namespace kvs
