// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/shared_starts.h"

#include <gtest/gtest.h>

#include "eval/evaluation.h"
#include "tests/eval/tiny_model.h"
#include "tests/model/caches.h"

namespace kvs {
namespace {

using Settings = std::vector<std::string>;

constexpr std::size_t kLength = 320, kPrefix = 280, kRun = 256;  // a run of keys

/// Two configurations of a method, and the tokens that each takes from the shared pass.
struct Pair {
  const char* method;
  Settings first, second;
  std::size_t first_tokens, second_tokens;
};
void PrintTo(const Pair& pair, std::ostream* out) {
  *out << pair.method;
  for (const std::string& setting : pair.first) *out << ' ' << setting;
}

std::vector<std::function<Cache()>> caches(const ModelConfig& config, const Pair& pair) {
  std::vector<std::function<Cache()>> make;
  for (const Settings& settings : {pair.first, pair.second})
    make.emplace_back([&config, method = pair.method, settings] { return test::cache_of(config, method, settings); });
  return make;
}

/// All that an evaluation finds, without times.
auto findings(const Evaluation& evaluation) {
  const CacheReport& cache = evaluation.cache;
  return std::tuple(evaluation.sum.nll, evaluation.sum.squares, evaluation.sum.scored, evaluation.full->divergence.kl,
                    evaluation.full->divergence.changes, cache.peak.stored, cache.end.stored, cache.compressions,
                    cache.tokens);
}

class SharedStartsOf : public ::testing::TestWithParam<Pair> {};

TEST_P(SharedStartsOf, AConfigurationFindsWhatItFindsAlone) {
  const std::vector<std::vector<std::int32_t>> documents{TinyModel::tokens(kLength)};
  for (const testing::TinyKind kind : {testing::TinyKind::kPlain, testing::TinyKind::kNormed}) {
    const TinyModel tiny(kind);
    const auto make = caches(tiny.model->config(), GetParam());
    SharedStarts starts(*tiny.decoder, documents, make, kPrefix);
    starts.share(std::vector<std::size_t>{0, 1});
    for (const std::size_t n : {std::size_t{1}, std::size_t{0}}) {
      EvaluationPlan plan{.make = make[n], .compare = true, .last = kLength - 1 - kPrefix};
      const Evaluation alone = evaluate_document(*tiny.decoder, documents[0], plan);
      plan.start = starts.of(n, 0);
      EXPECT_EQ(plan.start.tokens, n == 0 ? GetParam().first_tokens : GetParam().second_tokens);
      EXPECT_EQ(findings(evaluate_document(*tiny.decoder, documents[0], plan)), findings(alone));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Methods, SharedStartsOf,
    ::testing::Values(
        Pair{"full", {}, {}, kRun, kRun}, Pair{"full", {"type=fp8"}, {"type=fp8"}, kRun, kRun},
        Pair{"streaming", {"cache_size=32"}, {"cache_size=64"}, 32, 64},
        Pair{"streaming", {"cache_size=32", "type=fp8"}, {"cache_size=300", "type=fp8"}, 0, 0},
        Pair{"dropping", {"cache_size=32"}, {"cache_size=300"}, 32, kRun},
        // Coded rows that are rotated when they are read come as one group: 300 tokens would be cut.
        Pair{"dropping", {"cache_size=32", "type=fp8"}, {"cache_size=80", "type=fp8"}, 32, 80},
        Pair{"dropping", {"cache_size=32", "type=fp8"}, {"cache_size=300", "type=fp8"}, 0, 0},
        Pair{"freqkv", {"cache_size=32", "rope=post"}, {"cache_size=80", "iterate=off"}, 32, 80},
        Pair{"freqkv", {"cache_size=40", "type=fp8"}, {"cache_size=80", "iterate=off", "type=fp8"}, 40, 80},
        Pair{"lagkv", {"sinks=4", "lag=16"}, {"sinks=4", "lag=32"}, 36, 68},
        Pair{"lagkv", {"sinks=4", "lag=16", "prefix=100", "prefill=whole"}, {"sinks=4", "lag=160"}, 100, kRun},
        Pair{"h2o", {"cache_size=32", "recent=16"}, {"cache_size=64", "recent=16"}, 32, 64},
        Pair{
            "h2o", {"cache_size=32", "recent=16", "type=fp8"}, {"cache_size=300", "recent=1", "type=fp8"}, 32, kPrefix},
        Pair{"tova", {"cache_size=32"}, {"cache_size=64"}, 31, 63},
        Pair{"snapkv",
             {"prefix=280", "cache_size=40", "window=16"},
             {"prefix=100", "cache_size=40", "window=8"},
             264,
             92},
        Pair{"l2norm", {"prefix=280", "ratio=0.4"}, {"prefix=280", "ratio=0.2"}, kPrefix, kPrefix},
        Pair{"streaming", {"cache_size=32", "sinks=0"}, {"cache_size=64", "sinks=0"}, 32, 64},
        Pair{"faedkv",
             {"prefix=100", "sinks=4", "recent=20", "chunks=4", "kept=0"},
             {"prefix=280", "sinks=4", "recent=20", "chunks=4", "kept=0", "key_space=k_pre", "age=on"},
             100,
             kPrefix},
        // Caches that read other values, or whose tokens read a group that is not coded yet.
        Pair{"gqa", {"heads=1"}, {"heads=1"}, 0, 0},
        Pair{"kivi", {"bits=4", "group=8", "residual=32"}, {"bits=2", "group=8", "residual=32"}, 0, 0}),
    [](const auto& c) { return std::string(c.param.method) + std::to_string(c.index); });

class SharedStartsTest : public ::testing::Test {
 protected:
  SharedStarts starts_of(const std::vector<Pair>& pairs) {
    for (const Pair& pair : pairs) std::ranges::move(caches(tiny_.model->config(), pair), std::back_inserter(make_));
    return {*tiny_.decoder, documents_, make_, kPrefix};
  }

  TinyModel tiny_;
  std::vector<std::vector<std::int32_t>> documents_{TinyModel::tokens(kLength), TinyModel::tokens(kLength)};
  std::vector<std::function<Cache()>> make_;
};

TEST_F(SharedStartsTest, EqualTypesOfDifferentMethodsShareOnePass) {
  SharedStarts starts = starts_of({{"dropping", {"cache_size=32"}, {"cache_size=64", "type=fp8", "rope=post"}, 0, 0},
                                   {"tova", {"cache_size=32"}, {"cache_size=32", "type=fp8"}, 0, 0}});
  starts.share(std::vector<std::size_t>{0, 1, 2, 3});
  EXPECT_EQ(starts.of(0, 0).states, starts.of(2, 0).states);
  EXPECT_EQ(starts.of(1, 0).states, starts.of(3, 0).states);
  EXPECT_NE(starts.of(0, 0).states, starts.of(1, 0).states);
  EXPECT_EQ(starts.of(1, 0).states->tokens(), 64);
}

TEST_F(SharedStartsTest, OtherArithmeticSharesNothing) {
  SharedStarts starts =
      starts_of({{"streaming", {"cache_size=32", "sinks=4"}, {"cache_size=32", "sinks=5"}, 0, 0},
                 {"h2o", {"cache_size=32", "recent=4"}, {"cache_size=32", "recent=4", "type=fp8"}, 0, 0},
                 {"dropping", {"cache_size=32"}, {"cache_size=32", "type=fp8"}, 0, 0}});
  starts.share(std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
  for (std::size_t n = 0; n < make_.size(); ++n) EXPECT_EQ(starts.of(n, 0).states, nullptr) << n;
}

TEST_F(SharedStartsTest, AConfigurationWithoutAnotherLikeItSharesNothing) {
  SharedStarts starts = starts_of({{"h2o", {"cache_size=32", "recent=4"}, {"cache_size=64", "recent=4"}, 0, 0}});
  EXPECT_EQ(starts.of(0, 0).states, nullptr);
  starts.share(std::vector<std::size_t>{1});
  EXPECT_EQ(starts.of(1, 0).states, nullptr);
  starts.share(std::vector<std::size_t>{0, 1});
  EXPECT_NE(starts.of(1, 0).states, nullptr);
}

TEST_F(SharedStartsTest, ACacheThatCannotBeMadeSharesNothing) {
  make_ = {[]() -> Cache { throw Error(ErrorCode::kData, "cache", "found nothing, expected one"); }};
  SharedStarts starts = starts_of({{"tova", {"cache_size=32"}, {"cache_size=64"}, 0, 0}});
  starts.share(std::vector<std::size_t>{0, 1, 2});
  EXPECT_EQ(starts.of(0, 1).states, nullptr);
  EXPECT_EQ(starts.of(2, 1).tokens, 63);
}

}  // namespace
}  // namespace kvs
