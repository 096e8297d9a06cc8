// SPDX-License-Identifier: Apache-2.0
#include "eval/cached_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/eval/tiny_model.h"
#include "tests/model/caches.h"

namespace kvs {
namespace {

struct Losses {
  std::vector<float> nll;
  CacheReport report;
};

Losses losses(TinyModel& tiny, const std::string& method, const std::vector<std::string>& settings, std::size_t tokens,
              std::size_t group) {
  const auto ids = TinyModel::tokens(tokens);
  Cache cache = test::cache_of(tiny.model->config(), method, settings);
  Losses found;
  found.report =
      run_cached(*tiny.decoder, cache, ids, {.group = group}, [&](const ResidualStream& hidden, std::size_t first) {
        const auto nll = tiny.decoder->nll(hidden, successors(ids, first, hidden.tokens()));
        found.nll.insert(found.nll.end(), nll.begin(), nll.end());
      });
  found.nll.pop_back();
  return found;
}

struct Case {
  const char* method;
  std::vector<std::string> settings;
  std::size_t rows;  // held at the end, of 200 tokens
  std::size_t most;  // held at any time
  std::size_t compressions;
  std::size_t beside = 0;  // values of each KV head's row in addition to its key and value
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.method;
  for (const std::string& setting : c.settings) *out << ' ' << setting;
}

class CachedRun : public ::testing::TestWithParam<Case> {};

TEST_P(CachedRun, AnySplitOfATextGivesTheSameCacheAndTheSameLosses) {
  const Case& c = GetParam();
  constexpr std::size_t kLength = 200;
  TinyModel tiny;
  const Losses whole = losses(tiny, c.method, c.settings, kLength, LayerCache::kUnlimited);
  const ModelConfig& config = tiny.model->config();
  const std::size_t row = config.layers() * config.kv_heads() * (2 * config.head_dim() + c.beside) * 2;  // at 2 bytes
  EXPECT_EQ(whole.report.end.stored, c.rows * row);
  EXPECT_EQ(whole.report.peak.stored, c.most * row);
  EXPECT_EQ(whole.report.compressions, c.compressions);
  for (const std::size_t group : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
    const Losses split = losses(tiny, c.method, c.settings, kLength, group);
    EXPECT_LT(largest_difference(split.nll, whole.nll), 2e-5) << "groups of " << group;
    EXPECT_EQ(split.report.end.stored, whole.report.end.stored);
    EXPECT_EQ(split.report.peak.stored, whole.report.peak.stored);
    EXPECT_EQ(split.report.compressions, whole.report.compressions);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Methods, CachedRun,
    ::testing::Values(
        Case{"full", {}, 200, 200, 0},
        // A token reads its sinks, 27 others and itself; one row less remains for the next token.
        Case{"streaming", {"cache_size=32"}, 31, 32, 0}, Case{"streaming", {"cache_size=5", "sinks=4"}, 4, 5, 0},
        Case{"streaming", {"cache_size=16", "sinks=0"}, 15, 16, 0},
        // N = 28, L = 14: ⌈(200 − 32) / 14⌉ = 12 times, the last just before token 186.
        Case{"dropping", {"cache_size=32"}, 32, 32, 12}, Case{"freqkv", {"cache_size=32"}, 32, 32, 12},
        // N = 28, L = 7: after 8 compressions 11 + 200 − 32 − 7 · 21 = 32 slots are taken again.
        Case{"freqkv", {"cache_size=32", "gamma=0.25", "band=high"}, 32, 32, 8},
        Case{"freqkv", {"cache_size=32", "rope=post", "rescale=off"}, 32, 32, 12},
        Case{"dropping", {"cache_size=50", "sinks=0", "rope=post"}, 50, 50, 6},
        // S = 4, L = 16, ⌊rL⌋ = 4: at 36, 52, …, 196 tokens, 11 times; 4 + 11 · 4 + 16 + 4 rows stay. The peak is just
        // before the last time.
        Case{"lagkv", {"sinks=4", "lag=16", "ratio=0.25"}, 68, 76, 11},
        Case{"lagkv", {"sinks=4", "lag=16", "ratio=0.25", "variant=local"}, 68, 76, 11},
        // The bytes of a prefix before its compression do not count; afterwards the run continues as if step by step.
        Case{"lagkv", {"sinks=4", "lag=16", "ratio=0.25", "prefix=120", "prefill=whole"}, 68, 76, 11},
        // A token is dropped before each of tokens 32 … 199; a row has its mass.
        Case{"h2o", {"cache_size=32", "recent=16"}, 32, 32, 168, 1},
        Case{"h2o", {"cache_size=9", "recent=1"}, 9, 9, 191, 1}, Case{"tova", {"cache_size=32"}, 32, 32, 168},
        Case{"tova", {"cache_size=2"}, 2, 2, 198},
        Case{"snapkv", {"prefix=120", "cache_size=40", "window=16"}, 120, 120, 1},
        // 76 tokens become the first 9 of 39 bins; a complex bin of keys and values takes as much as two rows.
        Case{"faedkv", {"prefix=100", "sinks=4", "recent=20", "chunks=4", "kept=0"}, 24 + 18 + 100, 142, 1},
        Case{"faedkv",
             {"prefix=100", "sinks=4", "recent=20", "chunks=4", "kept=0", "key_space=k_pre"},
             24 + 18 + 100,
             142,
             1},
        // 176 tokens on a grid of 304, after rebuilds with 152 and 304 samples: the first 38 of 153 bins.
        Case{"faedkv", {"prefix=100", "sinks=4", "recent=20", "chunks=4", "kept=0", "age=on"}, 24 + 76, 101, 3},
        Case{"faedkv",
             {"prefix=100", "sinks=4", "recent=20", "chunks=4", "kept=0", "age=on", "key_space=k_pre"},
             24 + 76,
             101,
             3},
        Case{"faedkv",
             {"prefix=100", "sinks=4", "recent=20", "chunks=4", "kept=0", "age=on", "update=literal"},
             24 + 18,
             43,
             1},
        // Bins of keys alone and of values alone take as much as a row each: 9 of 39 and 9 + 10, 38 of 153 and 38 + 38.
        Case{"faedkv",
             {"prefix=100", "sinks=4", "recent=20", "chunks=4", "kept=0", "kept_v=0,2"},
             24 + 9 + 19 + 100,
             152,
             1},
        Case{"faedkv",
             {"prefix=100", "sinks=4", "recent=20", "chunks=4", "kept=0", "kept_v=0,2", "age=on"},
             24 + 38 + 76,
             139,
             3},
        Case{"faedkv",
             {"prefix=100", "sinks=4", "recent=20", "chunks=4", "kept=0,2", "kept_v=0", "age=on", "key_space=k_pre"},
             24 + 76 + 38,
             139,
             3},
        // Chunks 1, 2 and 4 of 5 of 51 bins are [10, 30) and [40, 51).
        Case{"faedkv", {"prefix=100", "sinks=0", "recent=0", "chunks=5", "kept=1-2,4", "age=off"}, 62 + 100, 162, 1},
        Case{"l2norm", {"prefix=50", "ratio=0.4", "skip_layers=none"}, 170, 170, 1},
        // One head instead of two.
        Case{"gqa", {"heads=1"}, 100, 100, 0}),
    [](const auto& c) { return std::string(c.param.method) + std::to_string(c.index); });

TEST(CachedRunOfSpectra, ValuesKeepTheChunksOfKeysUnlessToldOtherwise) {
  TinyModel tiny;
  const auto of = [&](const std::vector<std::string>& chunks) {
    std::vector<std::string> settings{"prefix=100", "sinks=4", "recent=20", "chunks=4", "age=on"};
    settings.insert(settings.end(), chunks.begin(), chunks.end());
    return losses(tiny, "faedkv", settings, 200, 1);
  };
  const Losses without = of({"kept=0,2"}), with = of({"kept=0,2", "kept_v=2,0"}), other = of({"kept=0,2", "kept_v=0"});
  EXPECT_EQ(without.nll, with.nll);
  EXPECT_EQ(without.report.peak.stored, with.report.peak.stored);
  EXPECT_GT(largest_difference(without.nll, other.nll), 1e-4);
}

/// Rounding may change a code, and with it the rank of a token: the difference is then a step of the storage type.
TEST(CachedRunOfCodes, AnySplitOfATextHoldsAsMuchAndLosesAsMuch) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> caches{
      {"full", {"type=int8_per_token_head"}},
      {"full", {"type=f16"}},
      {"streaming", {"cache_size=32", "type=int8_per_token_head"}},
      {"dropping", {"cache_size=32", "type=int8_per_token_head"}},
      {"freqkv", {"cache_size=32", "type=int8_per_token_head"}},
      {"lagkv", {"sinks=4", "lag=16", "ratio=0.25", "type=int8_per_token_head"}},
      {"h2o", {"cache_size=32", "recent=16", "type=f16"}},
      {"tova", {"cache_size=32", "type=f16"}},
      {"snapkv", {"prefix=120", "cache_size=40", "window=16", "type=int8_per_token_head"}},
      {"l2norm", {"prefix=50", "ratio=0.4", "type=int8_per_token_head"}},
      {"gqa", {"heads=1", "type=int8_per_token_head"}},
      {"kivi", {"group=8", "residual=16"}},
      {"kivi", {"group=8", "residual=16", "prefix=120", "prefill=whole"}}};
  for (const auto& [method, settings] : caches) {
    SCOPED_TRACE(method + " " + settings.back());
    TinyModel tiny;
    const Losses whole = losses(tiny, method, settings, 200, LayerCache::kUnlimited);
    for (const std::size_t group : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      const Losses split = losses(tiny, method, settings, 200, group);
      EXPECT_LT(largest_difference(split.nll, whole.nll), 1e-2) << "groups of " << group;
      EXPECT_EQ(split.report.end.stored, whole.report.end.stored);
      EXPECT_EQ(split.report.peak.stored, whole.report.peak.stored);
    }
  }
}

TEST(CachedRunOfCodes, BytesOfKiviByHand) {
  TinyModel tiny;
  const ModelConfig& config = tiny.model->config();
  // 200 tokens: 192 keys are coded, 12 whole windows of 16, and all values except the last 16: 4 bits a value and 4
  // bytes a group of 8.
  const std::size_t coded = 192 + (200 - 16), plain = 8 + 16, heads = config.layers() * config.kv_heads();
  const Losses found = losses(tiny, "kivi", {"group=8", "residual=16"}, 200, LayerCache::kUnlimited);
  EXPECT_EQ(found.report.end.stored, heads * config.head_dim() * (coded + 2 * plain));
  // Before the last token's oldest value is coded, one more value is plain.
  EXPECT_EQ(found.report.peak.stored, heads * config.head_dim() * (coded - 1 + 2 * (plain + 1)));
}

}  // namespace
}  // namespace kvs
