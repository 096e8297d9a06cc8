#include "calibrate/compare/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/compare/comparison_report.h"

namespace kvs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kScoredTokens = 10;  // scored of a document

ModelConfig one_layer() {
  ModelConfig model;
  model.layers = model.kv_heads = model.query_heads = 1;
  model.head_dim = 2;
  model.context = 64;
  return model;
}

/// A cell's result: a document for each divergence, with `parts` of the same divergence give or take a tenth.
CellResult scored(const std::vector<double>& kl, std::size_t parts = 0, double nll = 2.01) {
  CellResult result;
  result.sum.full.emplace();
  for (const double mean : kl) {
    result.sum.sum.add(nll * kScoredTokens, kScoredTokens);
    result.sum.full->sum.add(2.0 * kScoredTokens, kScoredTokens);
    result.sum.full->divergence += {.kl = mean * kScoredTokens, .agreed = kScoredTokens, .tokens = kScoredTokens};
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
  CellResult result;
};

Json compared(const std::vector<Named>& named) {
  std::vector<CompareCell> cells;
  std::vector<CellResult> results;
  for (const Named& one : named) {
    cells.push_back({.label = cell_label(one.method, one.type),
                     .method = one.method,
                     .type = one.type,
                     .budget = 0.5,
                     .calibrated = one.calibrated});
    results.push_back(one.result);
  }
  const std::vector budgets{0.5}, losses{0.02};
  return comparison_json(cells, results, {budgets, losses}, one_layer(), 32);
}
Json best_of(const std::vector<Named>& named) { return compared(named).at("best")[0]; }
std::string verdict_of(const Json& choice) { return choice.at("verdict"); }

TEST(BestChoice, IsNamedWithTheIntervalThatSupportsIt) {
  // A quarter of the divergence in each of four documents: the ratio's interval is a point.
  const Json best =
      best_of({{"lagkv", "", false, scored({0.4, 0.8, 0.4, 0.8})}, {"h2o", "", false, scored({0.1, 0.2, 0.1, 0.2})}});
  EXPECT_EQ(best.at("cell"), 1);
  EXPECT_EQ(best.at("leader"), 1);
  EXPECT_EQ(best.at("documents"), 4);
  EXPECT_EQ(best.at("kl").at("relative_to"), 0);
  EXPECT_NEAR(best.at("kl").at("mean"), 0.25, 1e-12);
  EXPECT_THAT(verdict_of(best), AllOf(HasSubstr("h2o ("), HasSubstr("KL × 0.25 (0.25–0.25) of lagkv ("),
                                      HasSubstr("over 4 documents, the next")));
}

TEST(BestChoice, IsThePlainerOfTwoThatDocumentsDoNotTellApart) {
  // The ratios of the divergences are 1/2, 2, 1/2 and 1.9: an interval that holds 1.
  const std::vector<Named> named{{"transform", "", true, scored({0.1, 0.2, 0.1, 0.19})},
                                 {"h2o", "q8_0", false, scored({0.2, 0.1, 0.2, 0.1})},
                                 {"full", "q4_0", false, scored({0.4, 0.8, 0.4, 0.8})}};
  const Json best = best_of(named);
  EXPECT_EQ(best.at("leader"), 0);
  EXPECT_EQ(best.at("cell"), 1);  // not the plainest of all, which is clearly behind
  EXPECT_THAT(best.at("alike"), ElementsAre(1));
  EXPECT_THAT(verdict_of(best), AllOf(HasSubstr("h2o + q8_0 ("), HasSubstr("not distinguishable from transform ("),
                                      HasSubstr("and the plainer: chosen")));
}

TEST(BestChoice, SaysWhereNoneOfThoseAlikeIsPlainer) {
  const Json best =
      best_of({{"h2o", "", false, scored({0.1, 0.2, 0.1, 0.19})}, {"lagkv", "", false, scored({0.2, 0.1, 0.2, 0.1})}});
  EXPECT_EQ(best.at("cell"), 0);
  EXPECT_THAT(verdict_of(best),
              AllOf(HasSubstr("not distinguishable from lagkv ("), HasSubstr("none of which is plainer")));
}

TEST(BestChoice, OfOneDocumentIsByItsPartsAndSaysSo) {
  // Twice the divergence; both caches' parts differ from the mean by the same factors.
  const Json best = best_of({{"h2o", "", false, scored({0.1}, 8)}, {"lagkv", "", false, scored({0.2}, 8)}});
  EXPECT_EQ(best.at("kl").at("over"), "parts");
  EXPECT_THAT(verdict_of(best), HasSubstr("KL × 0.5 (0.5–0.5) of lagkv"));
  EXPECT_THAT(verdict_of(best), HasSubstr("over 8 parts of 1 document alone"));
}

TEST(BestChoice, IsNotNamedByOneSample) {
  const Json best = best_of({{"h2o", "", false, scored({0.1})}, {"lagkv", "", false, scored({0.2})}});
  EXPECT_TRUE(best.at("cell").is_null());
  EXPECT_EQ(best.at("leader"), 0);
  EXPECT_THAT(verdict_of(best), HasSubstr("cannot be said"));
}

TEST(BestChoice, CellsOfFewerDocumentsAreComparedOnThoseThatBothHave) {
  // One document of less divergence than the mean of four says nothing: on that document the cell is behind.
  const Json best =
      best_of({{"lagkv", "", false, scored({0.15}, 8)}, {"h2o", "", false, scored({0.1, 0.5, 0.5, 0.5}, 8)}});
  EXPECT_EQ(best.at("cell"), 1);
  EXPECT_THAT(verdict_of(best), AllOf(HasSubstr("of lagkv ("), HasSubstr("parts of 1 document alone"),
                                      HasSubstr("which was scored on fewer")));
}

TEST(BestChoice, IsThePlainerAlsoWhereTimeLeftItBehind) {
  const std::vector<double> kl{0.1, 0.2, 0.1, 0.19};
  std::vector<Named> named{{"h2o", "", false, scored(kl, 8)}, {"full", "q8_0", false, scored({0.1}, 8)}};
  const Json result = compared(named), best = result.at("best")[0];
  EXPECT_EQ(best.at("leader"), 0);
  EXPECT_EQ(best.at("cell"), 1);
  EXPECT_THAT(best.at("alike"), ElementsAre(1));
  EXPECT_THAT(verdict_of(best), AllOf(HasSubstr("8 parts of 1 document alone"), HasSubstr("the plainer: chosen")));
  EXPECT_EQ(result.at("left_out").at("shortened"), 1);
  EXPECT_THAT(result.at("left_out").at("verdict").get<std::string>(),
              HasSubstr("scoring 1 on as many documents as the others"));
  named[1].result.stopped = true;  // beaten, and so not left behind
  EXPECT_EQ(best_of(named).at("cell"), 0);
  EXPECT_TRUE(compared(named).at("left_out").at("verdict").is_null());
}

TEST(BestChoice, IsNotSaidToBeAheadWhereMostDocumentsSayTheContrary) {
  // Half of the divergence in 15 documents, ten times as much in one: the mean is higher, the ratios' clearly lower.
  std::vector<double> even(16, 0.1), mostly(15, 0.05);
  mostly.push_back(1);
  const Json best = best_of({{"h2o", "", false, scored(even)}, {"lagkv", "", false, scored(mostly)}});
  EXPECT_EQ(best.at("leader"), 0);
  EXPECT_THAT(best.at("alike"), ElementsAre(1));
  EXPECT_GT(best.at("kl").at("interval")[0], 1);
  EXPECT_THAT(verdict_of(best),
              AllOf(HasSubstr("not distinguishable from lagkv ("), HasSubstr("but the mean KL is lower")));
}

TEST(BestChoice, SaysThatNothingReachesABudgetWithoutBlamingTheTime) {
  std::vector<CompareCell> cells{{.label = "c", .method = "h2o", .budget = 0.5, .config = "c.json"}};
  const std::vector<CellResult> results{scored({0.1}, 8)};
  const std::vector budgets{0.01}, losses{0.02};
  const Json best = comparison_json(cells, results, {budgets, losses}, one_layer(), 32).at("best")[0];
  EXPECT_THAT(verdict_of(best), HasSubstr("nothing reaches it; nearest is c with"));
}

TEST(SmallestChoice, NeedsAnInterval) {
  EXPECT_TRUE(compared({{"h2o", "", false, scored({0.1})}}).at("smallest")[0].at("cell").is_null());
  const Json parts = compared({{"h2o", "", false, scored({0.1}, 8)}}).at("smallest")[0];
  EXPECT_EQ(parts.at("cell"), 0);  // exp(0.01 ± 0.001) is below 1.02
  EXPECT_THAT(verdict_of(parts), HasSubstr("over 8 parts of 1 document alone"));
  const Json documents = compared({{"h2o", "", false, scored({0.1, 0.1, 0.1, 0.1}, 8)}}).at("smallest")[0];
  EXPECT_THAT(verdict_of(documents), HasSubstr("over 4 documents"));
}

TEST(Comparison, TerminalAndJsonSayTheSameWords) {
  const Json result =
      compared({{"h2o", "", false, scored({0.1, 0.1}, 8)}, {"lagkv", "", false, scored({0.2, 0.2}, 8)}});
  const std::string text = comparison_text(result, nullptr);
  EXPECT_THAT(text,
              AllOf(HasSubstr(verdict_of(result.at("best")[0])), HasSubstr(verdict_of(result.at("smallest")[0]))));
}

TEST(Comparison, SaysWhatWasLeftOut) {
  std::vector<CompareCell> cells{{.label = "h2o", .method = "h2o", .budget = 0.5},
                                 {.label = "lagkv", .method = "lagkv", .budget = 0.5},
                                 {.label = "elitekv", .method = "elitekv", .budget = 0.5, .calibrated = true},
                                 {.label = "elitekv", .method = "elitekv", .budget = 0.25, .calibrated = true}};
  cells[2].error = cells[3].error = "no time was left to calibrate it";
  const std::vector<CellResult> results{scored({0.1}, 8), {}, {}, {}};
  const std::vector budgets{0.5, 0.25}, losses{0.02};
  const Json result = comparison_json(cells, results, {budgets, losses}, one_layer(), 32);
  const std::string left = result.at("left_out").at("verdict");
  EXPECT_EQ(result.at("best")[0].at("unscored"), 2);
  EXPECT_THAT(verdict_of(result.at("best")[0]), HasSubstr("; no time was left to try 2 others of this budget"));
  EXPECT_EQ(left, "no time was left for calibrating elitekv to 50 %, 25 %; scoring 1 of 4 cells");
  EXPECT_EQ(result.at("left_out").at("shortened"), 0);
  EXPECT_EQ(result.at("left_out").at("calibrations").size(), 2U);
  EXPECT_THAT(comparison_text(result, nullptr), HasSubstr(left));
  EXPECT_TRUE(compared({{"h2o", "", false, scored({0.1}, 8)}}).at("left_out").at("verdict").is_null());
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
