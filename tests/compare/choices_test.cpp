// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/compare/comparison_result.h"

namespace kvs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kScoredTokens = 10;  // scored of a document

ModelConfig one_layer() {
  ModelConfig model;
  model.layer.assign(1, {.attention = {.query_heads = 1, .kv_heads = 1, .head_dim = 2}, .feed_forward = {}});
  model.context = 64;
  return model;
}

/// A configuration's result: a document for each divergence, with `parts` of the same divergence give or take a tenth.
ConfigurationResult scored(const std::vector<double>& kl, std::size_t parts = 0, double nll = 2.01) {
  ConfigurationResult result;
  result.sum.full.emplace();
  for (const double mean : kl) {
    result.sum.sum.add(nll * kScoredTokens, kScoredTokens);
    result.sum.full->sum.add(2.0 * kScoredTokens, kScoredTokens);
    for (std::size_t t = 0; t < kScoredTokens; ++t) result.sum.full->divergence.add({mean, true}, {}, 0);
    result.sum.full->agreed_per_document.push_back(kScoredTokens);
    result.sum.full->kl_per_document.push_back(mean * kScoredTokens);
    if (parts == 0) continue;
    auto& of_document = result.sum.parts.emplace_back();
    for (std::size_t n = 0; n < parts; ++n)
      of_document.push_back({nll + (n % 2 == 0 ? 0.001 : -0.001), 2.0, mean * (n % 2 == 0 ? 1.1 : 0.9)});
  }
  result.sum.cache.peak.stored = 64;
  result.scores = {.bytes = 64, .kl = kl};
  return result;
}

struct Named {
  std::string method, type;
  bool calibrated;
  ConfigurationResult result;
};

ComparisonResult compared(const std::vector<Named>& named) {
  std::vector<Configuration> configurations;
  std::vector<ConfigurationResult> results;
  for (const Named& one : named) {
    configurations.push_back({.label = configuration_label(one.method, one.type),
                              .method = one.method,
                              .type = one.type,
                              .budget = 0.5,
                              .calibrated = one.calibrated});
    results.push_back(one.result);
  }
  const std::vector budgets{0.5}, losses{0.02};
  return comparison_result(configurations, results, {budgets, losses}, one_layer(), 32);
}
BestChoice best_of(const std::vector<Named>& named) { return compared(named).best[0]; }

TEST(BestChoice, IsNamedWithTheIntervalThatSupportsIt) {
  // A quarter of the divergence in each of four documents: the ratio's interval is a point.
  const BestChoice best =
      best_of({{"lagkv", "", false, scored({0.4, 0.8, 0.4, 0.8})}, {"h2o", "", false, scored({0.1, 0.2, 0.1, 0.2})}});
  EXPECT_EQ(best.configuration, 1U);
  EXPECT_EQ(best.leader, 1U);
  EXPECT_EQ(best.documents, 4U);
  EXPECT_EQ(best.kl->relative_to, 0U);
  EXPECT_NEAR(best.kl->ratio.mean, 0.25, 1e-12);
  EXPECT_THAT(best.verdict, AllOf(HasSubstr("h2o ("), HasSubstr("KL × 0.25 (0.25–0.25) of lagkv ("),
                                  HasSubstr("over 4 documents, the next")));
}

TEST(BestChoice, ThatIsNotSafeIsCalledSo) {
  const BestChoice poor = best_of({{"lagkv", "", false, scored({2.0, 2.1})}, {"h2o", "", false, scored({2.6, 2.7})}});
  EXPECT_THAT(poor.verdict, HasSubstr("; not safe: KL divergence above 0.1 nats a token"));
  const BestChoice good = best_of({{"lagkv", "", false, scored({0.02, 0.02})}});
  EXPECT_THAT(good.verdict, ::testing::Not(HasSubstr("not safe")));
}

TEST(BestChoice, IsThePlainerOfTwoThatDocumentsDoNotTellApart) {
  // The ratios of the divergences are 1/2, 2, 1/2 and 1.9: an interval that holds 1.
  const std::vector<Named> named{{"transform", "", true, scored({0.1, 0.2, 0.1, 0.19})},
                                 {"h2o", "q8_0", false, scored({0.2, 0.1, 0.2, 0.1})},
                                 {"full", "q4_0", false, scored({0.4, 0.8, 0.4, 0.8})}};
  const BestChoice best = best_of(named);
  EXPECT_EQ(best.leader, 0U);
  EXPECT_EQ(best.configuration, 1U);  // not the plainest of all, which is clearly behind
  EXPECT_THAT(best.alike, ElementsAre(1));
  EXPECT_THAT(best.verdict, AllOf(HasSubstr("h2o + q8_0 ("), HasSubstr("not distinguishable from transform ("),
                                  HasSubstr("and the plainer: chosen")));
}

TEST(BestChoice, SaysWhereNoneOfThoseAlikeIsPlainer) {
  const BestChoice best =
      best_of({{"h2o", "", false, scored({0.1, 0.2, 0.1, 0.19})}, {"lagkv", "", false, scored({0.2, 0.1, 0.2, 0.1})}});
  EXPECT_EQ(best.configuration, 0U);
  EXPECT_THAT(best.verdict,
              AllOf(HasSubstr("not distinguishable from lagkv ("), HasSubstr("none of which is plainer")));
}

TEST(BestChoice, OfOneDocumentIsByItsPartsAndSaysSo) {
  // Twice the divergence; both caches' parts differ from the mean by the same factors.
  const BestChoice best = best_of({{"h2o", "", false, scored({0.1}, 8)}, {"lagkv", "", false, scored({0.2}, 8)}});
  EXPECT_EQ(best.kl->ratio.over, Samples::kParts);
  EXPECT_THAT(best.verdict, HasSubstr("KL × 0.5 (0.5–0.5) of lagkv"));
  EXPECT_THAT(best.verdict, HasSubstr("over 8 parts of 1 document alone"));
}

TEST(BestChoice, IsNotNamedByOneSample) {
  const BestChoice best = best_of({{"h2o", "", false, scored({0.1})}, {"lagkv", "", false, scored({0.2})}});
  EXPECT_FALSE(best.configuration);
  EXPECT_EQ(best.leader, 0U);
  EXPECT_THAT(best.verdict, HasSubstr("cannot be said"));
}

TEST(BestChoice, ConfigurationsOfFewerDocumentsAreComparedOnThoseThatBothHave) {
  // One document of less divergence than the mean of four says nothing: on that document the configuration is behind.
  const BestChoice best =
      best_of({{"lagkv", "", false, scored({0.15}, 8)}, {"h2o", "", false, scored({0.1, 0.5, 0.5, 0.5}, 8)}});
  EXPECT_EQ(best.configuration, 1U);
  EXPECT_THAT(best.verdict, AllOf(HasSubstr("of lagkv ("), HasSubstr("parts of 1 document alone"),
                                  HasSubstr("which was scored on fewer")));
}

TEST(BestChoice, IsThePlainerAlsoWhereTimeLeftItBehind) {
  const std::vector<double> kl{0.1, 0.2, 0.1, 0.19};
  std::vector<Named> named{{"h2o", "", false, scored(kl, 8)}, {"full", "q8_0", false, scored({0.1}, 8)}};
  const ComparisonResult result = compared(named);
  const BestChoice& best = result.best[0];
  EXPECT_EQ(best.leader, 0U);
  EXPECT_EQ(best.configuration, 1U);
  EXPECT_THAT(best.alike, ElementsAre(1));
  EXPECT_THAT(best.verdict, AllOf(HasSubstr("8 parts of 1 document alone"), HasSubstr("the plainer: chosen")));
  EXPECT_EQ(result.left_out.shortened, 1U);
  EXPECT_THAT(*result.left_out.verdict, HasSubstr("scoring 1 on as many documents as the others"));
  named[1].result.stopped = true;  // beaten, and so not left behind
  EXPECT_EQ(best_of(named).configuration, 0U);
  EXPECT_FALSE(compared(named).left_out.verdict);
}

TEST(BestChoice, IsNotSaidToBeAheadWhereMostDocumentsSayTheContrary) {
  // Half of the divergence in 15 documents, ten times as much in one: the mean is higher, the ratios' clearly lower.
  std::vector<double> even(16, 0.1), mostly(15, 0.05);
  mostly.push_back(1);
  const BestChoice best = best_of({{"h2o", "", false, scored(even)}, {"lagkv", "", false, scored(mostly)}});
  EXPECT_EQ(best.leader, 0U);
  EXPECT_THAT(best.alike, ElementsAre(1));
  EXPECT_GT(best.kl->ratio.interval->first, 1);
  EXPECT_THAT(best.verdict,
              AllOf(HasSubstr("not distinguishable from lagkv ("), HasSubstr("but the mean KL is lower")));
}

TEST(BestChoice, SaysThatNothingReachesABudgetWithoutBlamingTheTime) {
  std::vector<Configuration> configurations{{.label = "c", .method = "h2o", .budget = 0.5, .config = "c.json"}};
  const std::vector<ConfigurationResult> results{scored({0.1}, 8)};
  const std::vector budgets{0.01}, losses{0.02};
  const BestChoice best = comparison_result(configurations, results, {budgets, losses}, one_layer(), 32).best[0];
  EXPECT_THAT(best.verdict, HasSubstr("nothing reaches it; nearest is c with"));
}

TEST(SmallestChoice, IsNoCacheThatChangesThePredictions) {
  // A lower perplexity than the full cache's, and a divergence above 0.1 nats a token.
  EXPECT_FALSE(compared({{"h2o", "", false, scored({0.2, 0.2, 0.2, 0.2}, 8, 1.99)}}).smallest[0].configuration);
  EXPECT_TRUE(compared({{"h2o", "", false, scored({0.05, 0.05, 0.05, 0.05}, 8, 1.99)}}).smallest[0].configuration);
}

TEST(SmallestChoice, NeedsAnInterval) {
  EXPECT_FALSE(compared({{"h2o", "", false, scored({0.1})}}).smallest[0].configuration);
  const SmallestChoice parts = compared({{"h2o", "", false, scored({0.1}, 8)}}).smallest[0];
  EXPECT_EQ(parts.configuration, 0U);  // exp(0.01 ± 0.001) is below 1.02
  EXPECT_THAT(parts.verdict, HasSubstr("over 8 parts of 1 document alone"));
  const SmallestChoice documents = compared({{"h2o", "", false, scored({0.1, 0.1, 0.1, 0.1}, 8)}}).smallest[0];
  EXPECT_THAT(documents.verdict, HasSubstr("over 4 documents"));
}

TEST(Comparison, TerminalAndJsonSayTheSameWords) {
  const ComparisonResult result =
      compared({{"h2o", "", false, scored({0.1, 0.1}, 8)}, {"lagkv", "", false, scored({0.2, 0.2}, 8)}});
  const std::string text = to_text(result, {});
  EXPECT_THAT(text, AllOf(HasSubstr(result.best[0].verdict), HasSubstr(result.smallest[0].verdict)));
}

TEST(Comparison, SaysWhatWasLeftOut) {
  std::vector<Configuration> configurations{
      {.label = "h2o", .method = "h2o", .budget = 0.5},
      {.label = "lagkv", .method = "lagkv", .budget = 0.5},
      {.label = "elitekv", .method = "elitekv", .budget = 0.5, .calibrated = true},
      {.label = "elitekv", .method = "elitekv", .budget = 0.25, .calibrated = true}};
  configurations[2].error = configurations[3].error = "no time was left to calibrate it";
  const std::vector<ConfigurationResult> results{scored({0.1}, 8), {}, {}, {}};
  const std::vector budgets{0.5, 0.25}, losses{0.02};
  const ComparisonResult result = comparison_result(configurations, results, {budgets, losses}, one_layer(), 32);
  const std::string left = result.left_out.verdict.value_or("");
  EXPECT_EQ(result.best[0].unscored, 2U);
  EXPECT_THAT(result.best[0].verdict, HasSubstr("; no time was left to try 2 others of this budget"));
  EXPECT_EQ(left, "the time limit left out calibrating elitekv to 50 %, 25 %; scoring 1 of 4 configurations");
  EXPECT_EQ(result.left_out.shortened, 0U);
  EXPECT_EQ(result.left_out.calibrations.size(), 2U);
  EXPECT_THAT(to_text(result, {}), HasSubstr(left));
  EXPECT_FALSE(compared({{"h2o", "", false, scored({0.1}, 8)}}).left_out.verdict);
}

TEST(Parts, AreCounted) {
  const auto of = [](const std::string& method, const std::string& type, bool calibrated) {
    return parts_of({.label = "", .method = method, .type = type, .calibrated = calibrated});
  };
  EXPECT_LT(of("full", "q4_0", false), of("h2o", "", false));
  EXPECT_LT(of("h2o", "", false), of("h2o", "q4_0", false));
  EXPECT_LT(of("h2o", "q4_0", false), of("lagkv", "", true));
  EXPECT_LT(of("lagkv", "", true), of("transform", "", true));
}

}  // namespace
}  // namespace kvs
