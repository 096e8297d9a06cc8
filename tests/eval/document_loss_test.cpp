// SPDX-License-Identifier: Apache-2.0
// Documents that run through a cache layer by layer, against whole runs that are cut where any layer has to act.
#include "eval/document_loss.h"

#include <gtest/gtest.h>

#include "caches/document_cache.h"
#include "eval/evaluation.h"
#include "tests/eval/tiny_model.h"
#include "tests/model/caches.h"

namespace kvs {
namespace {

TEST(DocumentLoss, OfADocumentAsOneGroupIsThatOfAWholeRun) {
  struct Setup {
    const char* method;
    std::vector<std::string> settings;
  };
  const std::vector<Setup> setups{
      {"full", {}},
      {"freqkv", {"cache_size=20", "sinks=3"}},
      {"freqkv", {"cache_size=20,16,12,24", "gamma=0.25,0.5,0.75,0.5"}},
      {"dropping", {"cache_size=20", "rope=post"}},
      {"lagkv", {"lag=8,4,6,10", "sinks=2", "ratio=0.5"}},
      {"lagkv", {"lag=8", "ratio=0.5", "prefix=40", "prefill=whole"}},
      {"faedkv", {"prefix=40", "sinks=2", "recent=3", "chunks=4", "kept=0-1"}},
      {"snapkv", {"prefix=40", "cache_size=16", "window=4"}},
      {"streaming", {"cache_size=20"}},
      {"full", {"type=int8_per_token_head"}},
  };
  TinyModel tiny;
  const std::vector<std::vector<std::int32_t>> documents{TinyModel::tokens(60)};
  for (const auto& [method, settings] : setups) {
    const auto make = [&] { return test::cache_of(tiny.model->config(), method, settings); };
    const Evaluation whole = evaluate(*tiny.decoder, documents, {.make = make, .compare = true});
    Cache cache = for_documents(make());
    ResidualStream hidden = tiny.decoder->embed(documents.front(), 0, cache.positions(60));
    tiny.decoder->advance(hidden, tiny.model->config().layers(), nullptr, &cache);
    DocumentLoss loss(*tiny.decoder, documents.front(), cache.prefix().tokens);
    EXPECT_NEAR(loss.nll(hidden), whole.sum.mean(), 2e-6) << method << ' ' << Json(settings);
    EXPECT_GT(whole.sum.error(), 0);
    EXPECT_NEAR(loss.nll_error(hidden), whole.sum.error(), 2e-6) << method;
    const Divergence& expected = whole.full->divergence;
    EXPECT_NEAR(loss.divergence(hidden), expected.kl / static_cast<double>(expected.tokens), 2e-6) << method;
  }
}

TEST(DocumentLoss, NeedsTokensAfterThePrefix) {
  TinyModel tiny;
  const auto tokens = TinyModel::tokens(10);
  EXPECT_NO_THROW(DocumentLoss(*tiny.decoder, tokens, 8));
  EXPECT_THROW(DocumentLoss(*tiny.decoder, tokens, 9), Error);
}

TEST(DocumentLoss, OfSettingsThatMeetNanIsTheLargest) {
  EXPECT_EQ(loss_or_overflow([] { return 0.5; }), 0.5);
  EXPECT_EQ(loss_or_overflow([] { return std::nan(""); }), kOverflowLoss);
  EXPECT_EQ(loss_or_overflow([]() -> double { throw Error(ErrorCode::kData, "layer 3", "found NaN"); }), kOverflowLoss);
  EXPECT_THROW(loss_or_overflow([]() -> double { throw Error(ErrorCode::kEnvironment, "memory", "ran out"); }), Error);
  EXPECT_TRUE(overflows((kOverflowLoss + 3 + 3 + 3) / 4));
  EXPECT_FALSE(overflows(1e6));
}

}  // namespace
}  // namespace kvs
