// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/compare/comparison_result.h"

namespace kvs {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kScored = 10;

/// A configuration's result by its documents' mean NLLs and divergences.
ConfigurationResult result_of(const std::vector<double>& nll, const std::vector<double>& kl) {
  ConfigurationResult result;
  result.sum.full.emplace();
  for (std::size_t n = 0; n < nll.size(); ++n) {
    result.sum.sum.add(nll[n] * kScored, kScored);
    result.sum.full->sum.add(2.0 * kScored, kScored);
    for (std::size_t t = 0; t < kScored; ++t) result.sum.full->divergence.add({kl[n], true}, {}, 0);
    result.sum.full->agreed_per_document.push_back(kScored);
    result.sum.full->kl_per_document.push_back(kl[n] * kScored);
  }
  result.sum.cache.peak.stored = 64;
  result.scores = {.bytes = 64, .kl = kl};
  return result;
}

ModelConfig shape() {
  ModelConfig model;
  model.layer.assign(1, {.attention = {.query_heads = 1, .kv_heads = 1, .head_dim = 2}, .feed_forward = {}});
  model.context = 64;
  return model;
}

ComparisonResult comparison_of(const std::vector<Configuration>& configurations,
                               const std::vector<ConfigurationResult>& results) {
  const std::vector budgets{0.5, 0.25}, losses{0.01, 0.2};
  return comparison_result(configurations, results, {budgets, losses}, shape(), 32);
}

Configuration one(const std::string& label, double budget, bool calibrated, const std::string& type = "") {
  return {.label = label, .method = "lagkv", .type = type, .budget = budget, .calibrated = calibrated};
}

TEST(ComparisonGains, ArePairedOverTheDocumentsThatBothHave) {
  const ComparisonResult result =
      comparison_of({one("lagkv", 0.5, false), one("lagkv, calibrated", 0.5, true)},
                    {result_of({3, 4, 5}, {0.4, 0.2, 7}), result_of({2.9, 3.7}, {0.1, 0.2})});
  EXPECT_FALSE(result.configurations[0].over_standard);
  const RelativeLoss& gain = *result.configurations[1].over_standard;
  EXPECT_EQ(gain.documents, 2U);
  // Differences of -0.1 and -0.3: mean -0.2, standard error 0.1; Student's t of one degree has 12.7062 at 97.5 %.
  EXPECT_NEAR(gain.ppl.mean, std::exp(-0.2), 1e-12);
  EXPECT_NEAR(gain.ppl.interval->first, std::exp(-0.2 - 1.27062), 1e-5);
  EXPECT_NEAR(gain.ppl.interval->second, std::exp(-0.2 + 1.27062), 1e-4);
  EXPECT_NEAR(gain.kl.mean, 0.5, 1e-12);  // the geometric mean of a quarter and one
  EXPECT_THAT(to_text(result, {}), HasSubstr("relative to the paper's settings"));
}

TEST(ComparisonGains, HaveNoIntervalOnOneDocument) {
  const ComparisonResult result = comparison_of({one("lagkv", 0.5, false), one("lagkv, calibrated", 0.5, true)},
                                                {result_of({3}, {0.4}), result_of({2.9}, {0})});
  const RelativeLoss& gain = *result.configurations[1].over_standard;
  EXPECT_FALSE(gain.ppl.interval);
  EXPECT_GT(gain.kl.mean, 0);  // what keeps everything diverges by rounding alone
}

TEST(ComparisonGains, NeedTheSameBudgetAndStorageType) {
  const ConfigurationResult scored = result_of({3, 3}, {0.1, 0.1});
  const ComparisonResult result =
      comparison_of({one("lagkv", 0.5, false), one("lagkv, calibrated", 0.25, true),
                     one("lagkv, calibrated + q8_0", 0.5, true, "q8_0"), one("lagkv", 0.25, false)},
                    {scored, scored, scored, {}});
  for (const ComparedConfiguration& one : result.configurations) EXPECT_FALSE(one.over_standard) << one.label;
  EXPECT_EQ(to_text(result, {}).find("relative to"), std::string::npos);
}

TEST(ComparisonLosses, ArePairedWithTheBestOfTheBudget) {
  const ComparisonResult result = comparison_of({one("best", 0.5, false), one("worse", 0.5, false)},
                                                {result_of({3, 3}, {0.1, 0.2}), result_of({3.1, 3.3}, {0.2, 1.6})});
  EXPECT_FALSE(result.configurations[0].over_best);
  const RelativeLoss& loss = *result.configurations[1].over_best;
  EXPECT_EQ(loss.documents, 2U);
  EXPECT_NEAR(loss.ppl.mean, std::exp(0.2), 1e-12);
  EXPECT_NEAR(loss.kl.mean, 4, 1e-12);  // the geometric mean of 2 and 8
  // ln 2 each way from the mean is one standard error; Student's t of one degree has 12.7062 at 97.5 %.
  EXPECT_NEAR(loss.kl.interval->first, 4 * std::exp(-12.7062 * std::log(2)), 1e-5);
  EXPECT_THAT(to_text(result, {}), HasSubstr("  2  × 4 ("));
}

TEST(ComparisonLosses, AreOverTheDocumentsOfTheConfigurationThatStopped) {
  const ComparisonResult result = comparison_of({one("best", 0.5, false), one("stopped", 0.5, false)},
                                                {result_of({3, 3}, {0.1, 0.2}), result_of({3.1}, {0.5})});
  const RelativeLoss& loss = *result.configurations[1].over_best;
  EXPECT_EQ(loss.documents, 1U);
  EXPECT_NEAR(loss.kl.mean, 5, 1e-12);
  EXPECT_FALSE(loss.kl.interval);
}

/// A configuration with that many bytes at its peak.
ConfigurationResult holding(std::size_t bytes, const std::vector<double>& nll, const std::vector<double>& kl) {
  ConfigurationResult result = result_of(nll, kl);
  result.sum.cache.peak.stored = bytes;
  result.scores.bytes = static_cast<double>(bytes);
  return result;
}

TEST(ComparisonSmallest, IsTheFirstOfTheFrontThatCostsNoMoreByItsInterval) {
  // Full cache: 2 nats. Mean differences of 0.005 exactly, of 0.1 give or take 0.001, of 0.1 give or take 0.05; 0.004
  // with more bytes and divergence than the first, so not of the front.
  const ComparisonResult result = comparison_of(
      {one("q8_0", 0.5, false), one("sure", 0.25, false), one("unsure", 0.25, false), one("lucky", 0.5, false)},
      {holding(128, {2.005, 2.005}, {0.1, 0.1}), holding(64, {2.099, 2.101}, {0.2, 0.2}),
       holding(32, {2.05, 2.15}, {0.3, 0.3}), holding(129, {2.004, 2.004}, {0.4, 0.4})});
  ASSERT_EQ(result.smallest.size(), 2U);
  EXPECT_EQ(result.smallest[0].configuration, 0U);
  EXPECT_EQ(result.smallest[1].configuration, 1U);  // 0.1 + 12.7 · 0.001, not 0.1 + 12.7 · 0.05
  EXPECT_THAT(result.smallest[1].verdict, ::testing::AllOf(HasSubstr("sure ("), HasSubstr("over 2 documents")));
  EXPECT_THAT(to_text(result, {}), HasSubstr("smallest that costs at most\n      1 %: q8_0 ("));
}

TEST(ComparisonPareto, SaysOnHowManyDocumentsItsFrontWasScored) {
  ComparisonResult result = comparison_of({one("lagkv", 0.5, false)}, {result_of({3, 4}, {0.4, 0.2})});
  result.head.model.name = "M";
  result.documents = 8;
  result.prefix = 20;
  EXPECT_EQ(comparison_chart(result, {}).heading, "M · 2 of 8 documents of 32 tokens, the last 11 scored");
  result.documents = 2;
  EXPECT_EQ(comparison_chart(result, {}).heading, "M · 2 documents of 32 tokens, the last 11 scored");
}

TEST(ComparisonPareto, LeavesOutWhatWasScoredOnFewerDocuments) {
  ComparisonResult result = comparison_of({one("q8_0", 0.5, false), one("lucky", 0.5, false)},
                                          {holding(64, {2.1, 2.1}, {0.2, 0.2}), holding(64, {2.1}, {0.1})});
  result.head.model.name = "M";
  result.documents = 2;
  result.prefix = 20;
  const std::vector<TradePoint> points = trade_points(result);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].label, "q8_0");
}

TEST(ComparisonPareto, RowsOfAStorageTypeAreHollow) {
  ComparisonResult result = comparison_of({one("q8_0", 0.5, false), one("lagkv", 0.5, false)},
                                          {holding(64, {2.1, 2.1}, {0.2, 0.2}), holding(64, {2.1, 2.1}, {0.1, 0.1})});
  result.head.model.name = "M";
  result.documents = 2;
  result.prefix = 20;
  result.configurations[0].type = "q8_0";
  result.configurations[0].method = "full";
  const std::vector<TradePoint> points = trade_points(result);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_TRUE(points[0].stored);
  EXPECT_EQ(points[0].method, "quantised alone");
  EXPECT_FALSE(points[1].stored);
  EXPECT_EQ(points[1].method, "lagkv");
}

TEST(ComparisonSmallest, IsNoneWhereAllCostMore) {
  const ComparisonResult result = comparison_of({one("lagkv", 0.5, false)}, {result_of({3, 4}, {0.4, 0.2})});
  EXPECT_FALSE(result.smallest[0].configuration);
  EXPECT_THAT(to_text(result, {}),
              HasSubstr("1 %: no cache of the front is known to cost so little; nearest is lagkv"));
}

TEST(ComparisonBest, NamesWhatIsNearestToABudgetThatNothingReaches) {
  Configuration large = one("lagkv", 0.25, false), larger = one("snapkv", 0.25, false);
  large.error = "needs 28.1 %";
  large.needs = 0.281;
  larger.error = "needs 53.1 %";
  larger.needs = 0.531;
  const ComparisonResult result =
      comparison_of({one("h2o", 0.5, false), larger, large}, {holding(128, {2}, {0.1}), {}, {}});
  EXPECT_EQ(result.configurations[1].needs, 0.531);
  EXPECT_FALSE(result.configurations[0].needs);
  EXPECT_THAT(to_text(result, {}), HasSubstr("25 %: nothing reaches it; nearest is lagkv with 28.1 %"));
}

TEST(ComparisonBest, SaysWhereTimeWasMissingInsteadOfASetting) {
  const ComparisonResult result = comparison_of({one("h2o", 0.5, false), one("h2o", 0.25, false)},
                                                {holding(128, {2}, {0.1}), ConfigurationResult()});
  EXPECT_THAT(to_text(result, {}), HasSubstr("25 %: no time was left to score what would reach it"));
}

}  // namespace
}  // namespace kvs
