// SPDX-License-Identifier: Apache-2.0
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

ComparisonResult comparison_of(const Json& json) { return from_json<ComparisonResult>({json, "comparison.json"}); }

void set_ratio(Json& one, double ppl, double low, double high) {
  one["ratio"].update(Json{{"ppl", ppl}, {"interval", {low, high}}});
}

TEST(ComparisonFindings, AreSentencesAboutItsNumbers) {
  EXPECT_THAT(
      comparison_findings(comparison_of(output_json("comparison.json"))),
      ElementsAre(
          "At half of the bytes, perplexity changes with q8_0 by +0.10\u00A0% (95\u00A0%: \u22120.05 to "
          "+0.25\u00A0%), with lagkv (calibrated) by +5.0\u00A0% (95\u00A0%: +3.0 to +7.0\u00A0%), with lagkv by "
          "+8.0\u00A0% (95\u00A0%: +5.0 to +11\u00A0%); not usable on this model without training: freqkv "
          "(calibrated) (+210\u00A0%, on 2 documents).",
          "At a quarter of the bytes, perplexity changes with lagkv (calibrated) + q8_0 by +3.0\u00A0% (95\u00A0%: "
          "+1.0 to +5.0\u00A0%).",
          "Best at 50\u00A0% of the bytes: q8_0 (50.0 %), perplexity × 1.0010 (0.9995–1.0025), KL 0.0005: KL × 0.0125 "
          "(0.00813–0.0192) of lagkv (50.0 %)'s over 8 documents, the next",
          "Best at 25\u00A0% of the bytes: lagkv, calibrated + q8_0 (25.0 %), perplexity × 1.0300 (1.0100–1.0500), KL "
          "0.0150: no other was scored",
          "Best at 10\u00A0% of the bytes: nothing reaches it; nearest is lagkv, calibrated + q8_0 with 25 %",
          "Smallest that costs at most 1\u00A0% of perplexity: q8_0 (50.0 %), perplexity × 1.0010 (0.9995–1.0025), KL "
          "0.0005 over 8 documents",
          "Smallest that costs at most 5\u00A0% of perplexity: lagkv, calibrated + q8_0 (25.0 %), perplexity × 1.0300 "
          "(1.0100–1.0500), KL 0.0150 over 8 documents",
          "Calibration beats the settings of the paper in 1 of 1 pair of the same size, clearly in 1; most for lagkv "
          "(calibrated) at 50\u00A0%: perplexity \u22122.8\u00A0% (95\u00A0%: \u22124.0 to \u22121.6\u00A0%)."));
}

TEST(ComparisonFindings, FollowTheNumbersWhereTheyChange) {
  Json json = output_json("comparison.json");
  set_ratio(json["configurations"][1], 1.09, 1.05, 1.13);  // now the paper's are better
  json["configurations"][1]["over_standard"]["ppl"].update(Json{{"mean", 1.01}, {"interval", {0.98, 1.04}}});
  set_ratio(json["configurations"][0], 1.02, 1.01, 1.03);
  const auto findings = comparison_findings(comparison_of(json));
  EXPECT_THAT(findings,
              Contains(AllOf(HasSubstr("with q8_0 by +2.0\u00A0%"), HasSubstr("(calibrated) by +9.0\u00A0%"))));
  EXPECT_THAT(findings,
              Contains("Calibration beats the settings of the paper in 0 of 1 pair of the same size, clearly in 0."));
}

// A change whose interval holds 0 is no gain: what is said of it cannot contradict what is said of the smallest cache.
TEST(ComparisonFindings, GiveAGainItsInterval) {
  Json json = output_json("comparison.json");
  set_ratio(json["configurations"][0], 0.999, 0.99, 1.01);
  EXPECT_THAT(comparison_findings(comparison_of(json)),
              Contains(HasSubstr("with q8_0 by \u22120.10\u00A0% (95\u00A0%: \u22121.0 to +1.0\u00A0%), with")));
}

TEST(ComparisonFindings, RepeatWhatTheCommandLeftOut) {
  Json json = output_json("comparison.json");
  json["left_out"]["verdict"] = "the time limit left out scoring 1 of 6 configurations";
  EXPECT_THAT(comparison_findings(comparison_of(json)),
              Contains("The time limit left out scoring 1 of 6 configurations."));
}

TEST(ComparisonFindings, SayWhereAnIntervalIsOverParts) {
  Json json = output_json("comparison.json");
  json["configurations"][0]["ratio"]["over"] = "parts";
  json["configurations"][1]["over_standard"]["ppl"]["over"] = "parts";
  const auto findings = comparison_findings(comparison_of(json));
  EXPECT_THAT(findings, Contains(AllOf(HasSubstr("with q8_0 by +0.10\u00A0% (95\u00A0% over parts: \u22120.05 to "),
                                       HasSubstr("by +5.0\u00A0% (95\u00A0%: +3.0 to +7.0\u00A0%)"))));
  EXPECT_THAT(findings, Contains(HasSubstr("perplexity \u22122.8\u00A0% (95\u00A0% over parts: ")));
}

TEST(ComparisonFindings, NameNoCostOfWhatWasStoppedEarly) {
  Json json = output_json("comparison.json");
  json["configurations"][0]["stopped"] = true;
  const auto findings = comparison_findings(comparison_of(json));
  EXPECT_THAT(findings,
              Contains(HasSubstr("At half of the bytes, perplexity changes with lagkv (calibrated) by +5.0\u00A0%")));
}

TEST(ComparisonFindings, SayOnHowFewDocumentsACostWasMeasured) {
  Json json = output_json("comparison.json");
  for (Json& one : json["configurations"]) one["documents"] = 1;
  EXPECT_THAT(comparison_findings(comparison_of(json)),
              Contains(HasSubstr("At half of the bytes, on 1 of 8 documents, perplexity changes with q8_0 by +0.1")));
}

TEST(ComparisonFindings, CompareOnlyWhatHasAsManyDocuments) {
  Json json = output_json("comparison.json");
  json["configurations"][0]["documents"] = 7;
  EXPECT_THAT(comparison_findings(comparison_of(json)),
              Contains(HasSubstr("At half of the bytes, perplexity changes with lagkv (calibrated)")));
}

TEST(ComparisonFindings, SayNothingOfWhatWasNotMeasured) {
  Json json = output_json("comparison.json");
  for (Json& one : json["configurations"]) {
    one.erase("bytes_ratio");
    one["error"] = "no value";
  }
  EXPECT_THAT(comparison_findings(comparison_of(json)), Not(Contains(HasSubstr("At half"))));
}

TEST(ComparisonSpeeds, GoToTheConfigurationsOfTheirLabelAndBudget) {
  const ComparisonResult result = comparison_of(output_json("comparison.json"));
  const Json json = output_json("comparison_speed.json");
  const auto speeds = from_json<ComparisonSpeeds>({json, "speeds.json"});
  EXPECT_EQ(speed_of(result.configurations[0], speeds), 12.5);
  EXPECT_FALSE(speed_of(result.configurations[1], speeds));
}

}  // namespace
}  // namespace kvs::testing
