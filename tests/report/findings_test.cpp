#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "export/report/comparison.h"
#include "tests/report/outputs.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Comparison comparison_of(Json json) {
  return read_comparison({"comparison.json", "comparison.json", OutputKind::kComparison, std::move(json)});
}

TEST(ComparisonFindings, AreSentencesAboutItsNumbers) {
  EXPECT_THAT(
      comparison_findings(comparison_of(output_json("comparison.json"))),
      ElementsAre(
          "At half of the bytes, perplexity changes with q8_0 by +0.10\u00A0% (95\u00A0%: \u22120.05 to "
          "+0.25\u00A0%), with LagKV (calibrated) by +5.0\u00A0% (95\u00A0%: +3.0 to +7.0\u00A0%), with LagKV by "
          "+8.0\u00A0% (95\u00A0%: +5.0 to +11\u00A0%); not usable on this model without training: FreqKV "
          "(calibrated) (+210\u00A0%, on 2 documents).",
          "At a quarter of the bytes, perplexity changes with LagKV (calibrated) + q8_0 by +3.0\u00A0% (95\u00A0%: "
          "+1.0 to +5.0\u00A0%).",
          "The smallest cache of the front that costs at most 1\u00A0% of perplexity is q8_0 at 50\u00A0% of the "
          "bytes: perplexity +0.10\u00A0% (95\u00A0%: \u22120.05 to +0.25\u00A0%).",
          "The smallest cache of the front that costs at most 5\u00A0% of perplexity is LagKV (calibrated) + q8_0 at "
          "25\u00A0% of the bytes: perplexity +3.0\u00A0% (95\u00A0%: +1.0 to +5.0\u00A0%).",
          "Calibration beats the settings of the paper in 1 of 1 pair of the same size, clearly in 1; most for LagKV "
          "(calibrated) at 50\u00A0%: perplexity \u22122.8\u00A0% (95\u00A0%: \u22124.0 to \u22121.6\u00A0%)."));
}

TEST(ComparisonFindings, FollowTheNumbersWhereTheyChange) {
  Json json = output_json("comparison.json");
  json["cells"][1]["ratio"] = {{"ppl", 1.09}, {"interval", {1.05, 1.13}}};  // now the paper's are better
  json["cells"][1]["over_standard"]["ppl"] = {{"mean", 1.01}, {"interval", {0.98, 1.04}}};
  json["cells"][0]["ratio"] = {{"ppl", 1.02}, {"interval", {1.01, 1.03}}};
  json["smallest"][0]["cell"] = nullptr;
  const auto findings = comparison_findings(comparison_of(json));
  EXPECT_THAT(findings,
              Contains(AllOf(HasSubstr("with q8_0 by +2.0\u00A0%"), HasSubstr("(calibrated) by +9.0\u00A0%"))));
  EXPECT_THAT(findings,
              Contains("Calibration beats the settings of the paper in 0 of 1 pair of the same size, clearly in 0."));
  EXPECT_THAT(findings,
              Contains(HasSubstr("Of no cache of the front are the documents sure that it costs at most 1\u00A0%")));
}

// A change whose interval holds 0 is no gain: what is said of it cannot contradict what is said of the smallest cache.
TEST(ComparisonFindings, GiveAGainItsInterval) {
  Json json = output_json("comparison.json");
  json["cells"][0]["ratio"] = {{"ppl", 0.999}, {"interval", {0.99, 1.01}}};
  EXPECT_THAT(comparison_findings(comparison_of(json)),
              Contains(HasSubstr("with q8_0 by \u22120.10\u00A0% (95\u00A0%: \u22121.0 to +1.0\u00A0%), with")));
}

TEST(ComparisonFindings, RepeatTheCommandsOwnVerdicts) {
  Json json = output_json("comparison.json");
  json["best"][0]["verdict"] = json["best"][1]["verdict"] = "q8_0: no other was scored";
  json["smallest"][0]["verdict"] = "q8_0 (50.0 %)";
  json["left_out"] = {{"verdict", "no time was left for scoring 1 of 6 cells"}};
  const auto findings = comparison_findings(comparison_of(json));
  EXPECT_THAT(findings, Contains("Best at 50\u00A0% of the bytes: q8_0: no other was scored"));
  EXPECT_THAT(findings, Contains("Best at 25\u00A0% of the bytes: q8_0: no other was scored"));
  EXPECT_THAT(findings, Contains("Smallest that costs at most 1\u00A0% of perplexity: q8_0 (50.0 %)"));
  EXPECT_THAT(findings, Contains("No time was left for scoring 1 of 6 cells."));
  EXPECT_THAT(findings, Not(Contains(HasSubstr("The smallest cache of the front"))));
}

TEST(ComparisonFindings, SayWhereAnIntervalIsOverParts) {
  Json json = output_json("comparison.json");
  json["cells"][0]["ratio"]["over"] = "parts";
  json["cells"][1]["over_standard"]["ppl"]["over"] = "parts";
  const auto findings = comparison_findings(comparison_of(json));
  EXPECT_THAT(findings, Contains(AllOf(HasSubstr("with q8_0 by +0.10\u00A0% (95\u00A0% over parts: \u22120.05 to "),
                                       HasSubstr("by +5.0\u00A0% (95\u00A0%: +3.0 to +7.0\u00A0%)"))));
  EXPECT_THAT(findings, Contains(HasSubstr("perplexity +0.10\u00A0% (95\u00A0% over parts: ")));
  EXPECT_THAT(findings, Contains(HasSubstr("perplexity \u22122.8\u00A0% (95\u00A0% over parts: ")));
}

TEST(ComparisonFindings, NameNoSmallestCacheWhereNoneWasChosen) {
  Json json = output_json("comparison.json");
  json.erase("smallest");  // of an older program
  EXPECT_THAT(comparison_findings(comparison_of(json)), Not(Contains(HasSubstr("smallest"))));
}

TEST(ComparisonFindings, NameNoCostOfWhatWasStoppedEarly) {
  Json json = output_json("comparison.json");
  json["cells"][0]["stopped"] = true;
  const auto findings = comparison_findings(comparison_of(json));
  EXPECT_THAT(findings,
              Contains(HasSubstr("At half of the bytes, perplexity changes with LagKV (calibrated) by +5.0\u00A0%")));
}

TEST(ComparisonFindings, SayOnHowFewDocumentsACostWasMeasured) {
  Json json = output_json("comparison.json");
  for (Json& cell : json["cells"]) cell["documents"] = 1;
  EXPECT_THAT(comparison_findings(comparison_of(json)),
              Contains(HasSubstr("At half of the bytes, on 1 of 8 documents, perplexity changes with q8_0 by +0.1")));
}

TEST(ComparisonFindings, CompareOnlyWhatHasAsManyDocuments) {
  Json json = output_json("comparison.json");
  json["cells"][0]["documents"] = 7;
  EXPECT_THAT(comparison_findings(comparison_of(json)),
              Contains(HasSubstr("At half of the bytes, perplexity changes with LagKV (calibrated)")));
}

TEST(ComparisonFindings, SayNothingOfWhatWasNotMeasured) {
  Json json = output_json("comparison.json");
  for (Json& cell : json["cells"]) {
    cell["ratio"] = nullptr;
    cell["error"] = "no value";
  }
  EXPECT_THAT(comparison_findings(comparison_of(json)), Not(Contains(HasSubstr("At half"))));
}

TEST(ComparisonSpeeds, GoToTheCellsOfTheirLabelAndBudget) {
  Comparison comparison = comparison_of(output_json("comparison.json"));
  add_speeds({"speeds.json", "speeds.json", OutputKind::kSpeeds, output_json("comparison_speed.json")}, comparison);
  EXPECT_EQ(comparison.cells[0].speed, 12.5);
  EXPECT_FALSE(comparison.cells[1].speed);
}

}  // namespace
}  // namespace kvs::testing
