// SPDX-License-Identifier: Apache-2.0
#include "export/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/report/outputs.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const ReportOrigin kOrigin{"kvspectrum report outputs --out report.html", "1.2.3"};

TEST(Report, IsOnePageThatAsksForNothing) {
  const std::string page =
      render_report(read_report_inputs(std::vector<std::filesystem::path>{KVS_REPORT_OUTPUTS}), kOrigin);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
  for (const char* outside : {" src=", "<link", "url(", "@import", "https://", "fetch("})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, AllOf(HasSubstr("default-src &#39;none&#39;"), HasSubstr("kvspectrum 1.2.3 from 16 results"),
                          HasSubstr(kOrigin.command)));
  EXPECT_LT(page.size(), 230'000U);
}

TEST(Report, IsTheSamePageEachTime) {
  const ReportInputs inputs = read_report_inputs(std::vector<std::filesystem::path>{KVS_REPORT_OUTPUTS});
  EXPECT_EQ(render_report(inputs, kOrigin), render_report(inputs, kOrigin));
}

TEST(Report, AboveItsLimitIsRefused) {
  Json comparison = output_json("comparison.json");
  comparison["configurations"][0]["label"] = std::string(kMaxReportBytes, 'x');
  try {
    render_report(changed_output(OutputKind::kComparison, comparison), kOrigin);
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("expected at most 3,000,000: give fewer"));
  }
}

/// 80 layers of 8 heads, as a model of 70 billion weights has, over 4,096 tokens.
TEST(Report, OfALargeModelsSpectraStaysBelowItsLimit) {
  constexpr std::size_t kLayers = 80, kHeads = 8, kBands = 140;
  Json spectrum = output_json("spectrum.json");
  spectrum["layers"] = Json::array();
  for (std::size_t layer = 0; layer < kLayers; ++layer) spectrum["layers"].push_back(layer);
  for (Json& state : spectrum["states"]) {
    Json& all = state["all_tokens"];
    Json heads = all["with_dc"]["heads"][0], curve = Json::array(), bins = Json::array();
    for (auto& [quantity, values] : heads.items()) values = std::vector<Json>(kHeads, values[0]);
    all["with_dc"]["heads"] = all["without_dc"]["heads"] = std::vector<Json>(kLayers, heads);
    for (std::size_t band = 0; band < kBands; ++band) bins.push_back(band + 1);
    all["curve"] = {{"bins", bins}, {"power", std::vector<Json>(kLayers, bins)}};
  }
  const auto repeat = [](Json& by_layer) { by_layer = std::vector<Json>(kLayers, by_layer[0]); };
  for (const char* mean : {"mean_removed", "mean_kept"})
    for (auto& [key, gain] : spectrum["coding_gain"][mean].items()) {
      if (key == "joint") {
        repeat(gain);
        continue;
      }
      for (Json& step : gain["layers"]) repeat(step);
      if (gain.contains("weighted"))
        for (Json& step : gain["weighted"]["layers"]) repeat(step);
    }
  const std::string page = render_report(changed_output(OutputKind::kSpectrum, spectrum), kOrigin);
  EXPECT_LT(page.size(), kMaxReportBytes / 3);
}

}  // namespace
}  // namespace kvs::testing
