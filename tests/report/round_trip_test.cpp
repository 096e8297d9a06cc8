// SPDX-License-Identifier: Apache-2.0
// Results that are read into their structs are written again as they were.
#include <gmock/gmock.h>

#include "core/error.h"
#include "results/ablation.h"
#include "results/allocation.h"
#include "results/comparison.h"
#include "results/cost.h"
#include "results/evaluation.h"
#include "results/latency.h"
#include "results/perturbation.h"
#include "results/recommendation.h"
#include "results/retention.h"
#include "results/spectrum.h"
#include "results/token_scores.h"
#include "results/trace.h"
#include "tests/report/outputs.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class Result>
void expect_written_again(const Json& json) {
  EXPECT_EQ(dump_json(to_json(from_json<Result>({json, "result.json"}))), dump_json(json));
}

TEST(RoundTrip, CalibrationsAndCosts) {
  expect_written_again<CostResult>(output_json("cost.json"));
  const Json faedkv = output_json("faedkv.json");
  expect_written_again<AblationResult>(faedkv.at("calibration").at("ablation"));
  Json allocation = output_json("freqkv.json").at("calibration").at("allocation");
  for (Json& one : allocation["contenders"]) {
    // Behind `ppl`; the sample is of a program that wrote the perplexity alone.
    Json written{{"name", one["name"]}, {"bytes", one["bytes"]}, {"parameters", one["parameters"]},
                 {"ppl", nullptr},      {"nll_mean", 812.5},     {"nll_error", 0.5}};
    for (const char* name : {"difference", "interval"})
      if (one.contains(name)) written[name] = one[name];
    one = written;
  }
  expect_written_again<AllocationResult>(allocation);
}

TEST(RoundTrip, StatesAndTheirBands) {
  expect_written_again<SpectrumResult>(output_json("spectrum.json"));
  expect_written_again<PerturbationResult>(output_json("perturb.json"));
  expect_written_again<RetentionResult>(output_json("retain.json"));
  expect_written_again<TokenScoresResult>(output_json("scores.json"));
}

TEST(RoundTrip, CachesAtWork) {
  expect_written_again<EvaluationResult>(output_json("full.eval.json"));
  expect_written_again<EvaluationResult>(output_json("lagkv.eval.json"));
  expect_written_again<TaskAnswers>(output_json("needle.json"));
  expect_written_again<TraceResult>(output_json("streaming.trace.json"));
  expect_written_again<LatencyResult>(output_json("latency.json"));
  expect_written_again<Recommendation>(output_json("recommendation.json"));
  expect_written_again<ComparisonResult>(output_json("comparison.json"));
  expect_written_again<ComparisonSpeeds>(output_json("comparison_speed.json"));
}

/// The text of a comparison or of its speeds with the names of version 0.1.
Json with_old_names(const Json& json) {
  std::string text = dump_json(json);
  for (const auto& [name, old_name] : {std::pair("\"configurations\":", "\"cells\":"),
                                       {"\"configuration\":", "\"cell\":"},
                                       {"\"pareto_front\":", "\"front\":"}})
    for (std::size_t at = 0; (at = text.find(name)) != std::string::npos;)
      text.replace(at, std::string_view(name).size(), old_name);
  return parse_json(text, "old.json");
}

TEST(RoundTrip, ComparisonsOfVersion01AreRead) {
  const Json comparison = output_json("comparison.json"), speeds = output_json("comparison_speed.json");
  Json old = with_old_names(comparison);
  EXPECT_FALSE(old.contains("configurations"));
  EXPECT_EQ(to_json(from_json<ComparisonResult>({old, "old.json"})), comparison);
  EXPECT_EQ(to_json(from_json<ComparisonSpeeds>({with_old_names(speeds), "old.json"})), speeds);
  old["best"][0]["cell"] = 99;
  EXPECT_THAT(
      [&] {
        (void)from_json<ComparisonResult>({old, "old.json"});
      },
      ThrowsMessage<Error>(HasSubstr("/best/0/cell: found 99, expected the index of a configuration")));
}

TEST(RoundTrip, APerplexityAloneIsALoss) {
  const Json json{{"ppl", 20.0}};
  EXPECT_NEAR(from_json<MeanLoss>({json, "result.json"}).nll(), std::log(20.0), 1e-15);
}

TEST(RoundTrip, AMapOfAnotherShapeIsRefused) {
  Json ablation = output_json("faedkv.json").at("calibration").at("ablation");
  ablation["delta"][0].erase(0);
  try {
    (void)from_json<AblationResult>({ablation, "faedkv.json"});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("faedkv.json: /delta/0: found "));
  }
}

}  // namespace
}  // namespace kvs::testing
