// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "calibrate/cache_choice.h"
#include "calibrate/triattention/cache.h"
#include "calibrate/triattention/config_file.h"
#include "calibrate/triattention/query_sums.h"
#include "eval/evaluation.h"
#include "model/cache_shape.h"
#include "states/live_source.h"
#include "tests/calibrate/weighed_tokens.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using Read = std::vector<std::vector<std::size_t>>;

constexpr double kQuarterTurn = std::numbers::pi / 2;

std::shared_ptr<const QueryStatistics> statistics(std::size_t query_heads, std::size_t head_dim, std::size_t chunks,
                                                  std::vector<float> mean, std::vector<float> magnitude) {
  return std::make_shared<QueryStatistics>(QueryStatistics{.layer = 0,
                                                           .query_heads = query_heads,
                                                           .head_dim = head_dim,
                                                           .chunks = chunks,
                                                           .mean = std::move(mean),
                                                           .magnitude = std::move(magnitude)});
}

TEST(FutureScores, AreTheNormalisedLogitsOfTheMeanQueryFromTheDistancesToCome) {
  // The chunk turns by a quarter for each token. From position 3 on, with the distances 1 and 2, the query (1, 0) turns
  // four and five times, to (1, 0) and (0, 1); their mean is (½, ½). The logits ½, −½ and 0 have the mean 0 and the
  // deviation √(1/6).
  const FutureScores scores(statistics(1, 2, 1, {1, 0}, {1}), {kQuarterTurn}, 1, 3);
  const double one = 0.5 * std::sqrt(6.0);
  EXPECT_THAT(scores.scores(std::vector<float>{1, 0, 0, -1, 0, 0}, 0, 1, 3),
              ElementsAre(DoubleNear(one, 1e-6), DoubleNear(-one, 1e-6), DoubleNear(0, 1e-6)));
}

TEST(FutureScores, CountTheLengthOfKeysWhereQueriesPointEverywhere) {
  // Queries of magnitude 2 whose mean is 0: the scores are 2 · 5, 2 · 1 and 2 · 0 for any angle, so those of 5, 1, 0.
  const FutureScores scores(statistics(1, 2, 1, {0, 0}, {2}), {0.1}, 1, 1);
  const double deviation = std::sqrt(14.0 / 3);
  EXPECT_THAT(
      scores.scores(std::vector<float>{3, 4, 0, -1, 0, 0}, 0, 1, 7),
      ElementsAre(DoubleNear(3 / deviation, 1e-6), DoubleNear(-1 / deviation, 1e-6), DoubleNear(-2 / deviation, 1e-6)));
}

TEST(FutureScores, AreTheLargestOfTheQueryHeadsThatReadTheKey) {
  // Heads 0 and 1 read KV head 0 and want opposite keys, so both keys have the score 1; heads 2 and 3 agree. The scale
  // of a head's queries does not matter.
  const FutureScores scores(statistics(4, 1, 0, {1, -9, 1, 5}, {1, 9, 1, 5}), {}, 1, 1);
  const std::vector<float> keys{1, -1};
  EXPECT_THAT(scores.scores(keys, 0, 2, 0), ElementsAre(DoubleNear(1, 1e-9), DoubleNear(1, 1e-9)));
  EXPECT_THAT(scores.scores(keys, 1, 2, 0), ElementsAre(DoubleNear(1, 1e-9), DoubleNear(-1, 1e-9)));
}

TEST(FutureScores, CountTheFactorOfRoPEWhereChannelsRotate) {
  // Channels 0 and 1 are a chunk that rotates by 0, with the factor 2 also in the keys; channel 2 never rotates. The
  // scores 2 · 1 · 2 and 1 · 3 differ by 1, which normalising makes ±1; without the factor the order is the other.
  const FutureScores scores(statistics(1, 3, 1, {1, 0, 1}, {1, 1}), {0.0}, 2, 1);
  EXPECT_THAT(scores.scores(std::vector<float>{2, 0, 0, 0, 0, 3}, 0, 1, 0),
              ElementsAre(DoubleNear(1, 1e-9), DoubleNear(-1, 1e-9)));
}

TEST(FutureScores, RefuseKeysThatAreNotFinite) {
  const FutureScores scores(statistics(1, 1, 0, {1}, {1}), {}, 1, 1);
  test::expect_error(ErrorCode::kData, "triattention: found a score that is not finite", [&] {
    (void)scores.scores(std::vector<float>{1, std::nanf("")}, 0, 1, 0);
  });
}

/// A cache that prefers tokens of great weight: the weight's logarithm is the only channel of a key.
std::unique_ptr<LayerCache> cache_by_weight(const TriattentionOptions& options, std::size_t tokens) {
  std::vector<float> mean(2 * tokens, 0.0F);
  mean[0] = mean[tokens] = 1;
  const auto prefers = statistics(2, tokens, 0, mean, mean);  // all queries are alike
  return make_triattention_cache(options, {}, std::make_shared<FutureScores>(prefers, std::vector<double>{}, 1, 1));
}

TEST(TriattentionCache, KeepsTheBestOfEachHeadWhenItIsFull) {
  const auto cache = cache_by_weight({.cache_size = 5, .interval = 2}, 8);
  test::WeighedTokens tokens(*cache, {{3, 9, 4, 4, 5, 1, 1, 1}, {9, 8, 7, 1, 6, 1, 1, 1}});
  EXPECT_EQ(cache->max_tokens_per_call(), 5U);
  tokens.feed(5);
  EXPECT_EQ(cache->compressions(), 0U);
  EXPECT_EQ(cache->max_tokens_per_call(), 2U);  // token 5 finds it full, and leaves place for one more
  EXPECT_EQ(tokens.feed_and_see(), (Read{{1, 2, 4, 5}, {0, 1, 2, 5}}));  // of the equal tokens 2 and 3 the first
  EXPECT_EQ(tokens.feed_and_see(), (Read{{1, 2, 4, 5, 6}, {0, 1, 2, 5, 6}}));
  EXPECT_EQ(tokens.feed_and_see(), (Read{{1, 2, 4, 7}, {0, 1, 2, 7}}));
  EXPECT_EQ(cache->compressions(), 2U);
}

TEST(TriattentionCache, LeavesFirstAndLastTokensAlone) {
  const auto cache = cache_by_weight({.cache_size = 6, .interval = 2, .sinks = 1, .recent = 2}, 7);
  test::WeighedTokens tokens(*cache, {{1, 2, 3, 2, 1, 1, 1}, {1, 1, 2, 3, 1, 1, 1}});
  tokens.feed(6);
  EXPECT_EQ(tokens.feed_and_see(), (Read{{0, 2, 4, 5, 6}, {0, 3, 4, 5, 6}}));
}

TEST(TriattentionCache, DropsTokensOfAWholePrefixAtItsEnd) {
  const auto cache = cache_by_weight({.cache_size = 4, .interval = 2}, 6);
  test::WeighedTokens tokens(*cache, {{5, 1, 2, 6, 3, 1}, {1, 2, 3, 4, 5, 1}});
  cache->begin_prefix(5);
  EXPECT_EQ(cache->max_tokens_per_call(), LayerCache::kUnlimited);
  tokens.feed(5);
  EXPECT_EQ(cache->compressions(), 0U);
  cache->end_prefix(tokens.backend());
  EXPECT_EQ(tokens.feed_and_see(), (Read{{0, 3, 5}, {3, 4, 5}}));
}

TEST(QueryStatistics, HaveTheLengthOfTheirMean) {
  // Chunk (0, 1) of head 0: mean (3, 4) of magnitude 10; channel 2: mean −1 of magnitude 2. Head 1: none.
  const auto one = statistics(2, 3, 1, {3, 4, -1, 0, 0, 0}, {10, 2, 1, 3});
  EXPECT_EQ(one->mean_magnitude(0, 0), 5);
  EXPECT_EQ(one->mean_magnitude(0, 1), 1);
  EXPECT_EQ(one->resultant_length(), 6.0 / 16);
}

/// Golden values of a model with QK-norm and grouped queries (golden/make_triattention_golden.py).
class TriattentionGolden : public testing::Test {
 protected:
  void SetUp() override {
    const Json model = read("parity/qwen3.json");
    golden_ = read("triattention.json");
    tokens_ = read("parity/tokens.json").get<std::vector<std::int32_t>>();
    test::write_formula_model(folder_ / "model", model["config"], model["tensors"]);
    backend_ = make_backend("cpu", DType::kF32, 2);
    source_ = ModelSource::open(folder_ / "model");
    model_ = std::make_unique<Model>(*source_, *backend_);
    decoder_ = std::make_unique<Decoder>(*model_);
  }
  static Json read(const std::string& name) {
    const std::filesystem::path path = test::golden_path(name);
    return parse_json(read_text_file(path, 1 << 20), path.string());
  }
  std::vector<QueryStatistics> statistics() const {
    const auto first = tokens_.begin();
    LiveSource states(*decoder_, {{first, first + golden_["calibrated"].get<std::ptrdiff_t>()}});
    QuerySums sums(source_->config());
    sums.add(states, 0);
    return sums.statistics();
  }
  /// The mean NLL with a config of these settings.
  double loss(const Json& settings) const {
    const CacheShape shape = cache_shape(source_->config());
    Parameters parameters({{settings, "", ErrorCode::kUsage}}, shape);
    (void)make_cache(kTriattentionMethod, parameters, shape);
    const std::filesystem::path path = folder_ / "tri.json";
    Provenance record;
    record.command = "test";
    record.tool_version = "1";
    record.window = tokens_.size();
    (void)write_triattention_config(statistics(), *source_, parameters.resolved(), record, path, true);
    const CacheChoice choice = cache_of_config(path, *source_);
    const std::function<Cache()> make = cache_maker(choice, *backend_, source_->config(), tokens_.size());
    return evaluate_document(*decoder_, tokens_, {.make = make}).sum.mean();
  }

  test::TemporaryDirectory folder_;
  Json golden_;
  std::vector<std::int32_t> tokens_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<ModelSource> source_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Decoder> decoder_;
};

TEST_F(TriattentionGolden, QueriesAreAveragedAfterQkNormAndBeforeRoPE) {
  const auto flat = [](const Json& heads) {
    std::vector<float> all;
    for (const Json& head : heads)
      for (const Json& value : head) all.push_back(value.get<float>());
    return all;
  };
  const std::vector<QueryStatistics> found = statistics();
  ASSERT_EQ(found.size(), 3U);
  for (const QueryStatistics& one : found) {
    EXPECT_THAT(one.mean, Pointwise(testing::FloatNear(1e-5F), flat(golden_["mean"][one.layer])));
    EXPECT_THAT(one.magnitude, Pointwise(testing::FloatNear(1e-5F), flat(golden_["magnitude"][one.layer])));
  }
}

TEST_F(TriattentionGolden, LossesEqualThoseOfAnotherProgram) {
  for (const Json& one : golden_["cases"])
    EXPECT_NEAR(loss(one["settings"]), one["nll"].get<double>(), 2e-5) << one["settings"];
}

}  // namespace
}  // namespace kvs
