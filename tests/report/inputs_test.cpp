// SPDX-License-Identifier: Apache-2.0
#include "export/report/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/io/temporary_directory.h"
#include "tests/report/outputs.h"

namespace kvs::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<OutputKind> kinds(const ReportInputs& inputs) {
  std::vector<OutputKind> kinds;
  for (const Output& output : inputs.outputs) kinds.push_back(output.kind);
  return kinds;
}

/// The error of reading `paths`, and its code.
std::pair<ErrorCode, std::string> refusal(const std::vector<std::filesystem::path>& paths) {
  try {
    read_report_inputs(paths);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::kInternal, "nothing was refused"};
}

TEST(ReportInputs, KnowEveryResultByWhatItHolds) {
  using enum OutputKind;
  EXPECT_THAT(kinds(read_outputs({"spectrum.json", "faedkv.json", "full.eval.json", "needle.json", "cost.json"})),
              ElementsAre(kSpectrum, kConfig, kEvaluation, kTask, kCost));
}

TEST(ReportInputs, TakeTheSpeedsBesideAComparisonAndEachFileOnce) {
  using enum OutputKind;
  EXPECT_THAT(kinds(read_outputs({"comparison.json", "comparison.json", "comparison_speed.json"})),
              ElementsAre(kComparison, kSpeeds));
}

TEST(ReportInputs, PassOverSpeedsWithoutTheirComparison) {
  EXPECT_THAT(refusal({output_path("comparison_speed.json")}).second, HasSubstr("found no result"));
  const test::TemporaryDirectory folder;
  write_file_atomically(folder.path() / "other_speed.json", output_json("comparison_speed.json").dump(), false);
  write_file_atomically(folder.path() / "comparison.json", output_json("comparison.json").dump(), false);
  const ReportInputs inputs = read_report_inputs(std::vector{folder.path()});
  EXPECT_THAT(kinds(inputs), ElementsAre(OutputKind::kComparison));
  EXPECT_THAT(inputs.skipped, ElementsAre("other_speed.json (speeds without their comparison)"));
}

TEST(ReportInputs, OfAFolderAreInByteOrderOfTheirPaths) {
  const ReportInputs inputs = read_report_inputs(std::vector<std::filesystem::path>{KVS_REPORT_OUTPUTS});
  ASSERT_EQ(inputs.outputs.size(), 16U);
  EXPECT_EQ(inputs.outputs.front().name, "comparison.json");
  EXPECT_EQ(inputs.outputs.back().name, "streaming.trace.json");
}

TEST(ReportInputs, OfTwoModelsAreAConflictThatNamesBoth) {
  const test::TemporaryDirectory folder;
  Json other = output_json("needle.json");
  other["model"]["sha256"] = "another";
  other["model"]["name"] = "Other";
  write_file_atomically(folder.path() / "other.json", other.dump(), false);
  const auto [code, message] = refusal({output_path("full.eval.json"), folder.path() / "other.json"});
  EXPECT_EQ(code, ErrorCode::kConflict);
  EXPECT_THAT(message, HasSubstr("other.json: /model/sha256: found another (Other), expected "));
  EXPECT_THAT(message, HasSubstr("full.eval.json"));
}

TEST(ReportInputs, OfTheSameWeightsWithAnotherRotationAreAConflict) {
  const test::TemporaryDirectory folder;
  Json other = output_json("needle.json");
  other["model"]["rope"]["theta"] = 12345.5;
  write_file_atomically(folder.path() / "other.json", other.dump(), false);
  const auto [code, message] = refusal({output_path("full.eval.json"), folder.path() / "other.json"});
  EXPECT_EQ(code, ErrorCode::kConflict);
  EXPECT_THAT(message, HasSubstr("other.json: /model/theta: found 12345.5, expected "));
  other = output_json("needle.json");
  other["model"]["kv_heads"] = 7;
  write_file_atomically(folder.path() / "other.json", other.dump(), true);
  EXPECT_EQ(refusal({output_path("full.eval.json"), folder.path() / "other.json"}).first, ErrorCode::kConflict);
}

TEST(ReportInputs, ThatBreakTheirSchemaAreRefused) {
  const test::TemporaryDirectory folder;
  Json config = output_json("faedkv.json");
  config["calibration"]["ablation"]["delta"] = "none";
  write_file_atomically(folder.path() / "faedkv.json", config.dump(), false);
  EXPECT_EQ(refusal({folder.path() / "faedkv.json"}).first, ErrorCode::kInput);
}

}  // namespace
}  // namespace kvs::testing
