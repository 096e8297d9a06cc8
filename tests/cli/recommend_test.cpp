// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "tests/cli/text_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

class RecommendProgram : public TextPrograms {
 protected:
  std::vector<std::string> recommend(const std::string& out, std::vector<std::string> more) const {
    more.insert(more.begin(),
                {"recommend", "--model", folder_ / "model", "--out-dir", folder_ / out, "--threads", "1"});
    return more;
  }
};

TEST_F(RecommendProgram, MeasuresTheEnginesTypesAndWritesWhatItNeeds) {
  write_text_of_rays(folder_ / "rays.txt", 12);
  const Outcome outcome = run("kvcalibrate", recommend("safe", {"--engine", "vllm", "--context", "64", "--text",
                                                                folder_ / "rays.txt", "--max-kl", "5.5"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("in vllm (0.33.0)\nUse "), HasSubstr("vllm: --kv-cache-dtype ")));
  const Json found = config("safe/recommendation.json"), comparison = config("safe/comparison.json");
  EXPECT_EQ(found.at("tokens"), 64);
  for (const Json& one : comparison.at("configurations"))
    EXPECT_EQ(one.contains("kl"), one.at("engines").contains("vllm") || !one.at("engines").empty()) << one;
  EXPECT_EQ(config("safe/config.json").at("method"), "full");
  // Types other than fp8 need no scales, so that a file of flags is all that vLLM gets.
  const std::filesystem::path flags = folder_ / "safe/vllm.yaml";
  const bool has_flags = found.at("use").at("export") == "vllm-flags";
  ASSERT_EQ(std::filesystem::exists(flags), has_flags);
  if (has_flags) {
    EXPECT_THAT(slurp(flags), HasSubstr("kv-cache-dtype: ["));
  }
  const Outcome report = run("kvspectrum", {"report", folder_ / "safe", "--out", folder_ / "report.html"});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_THAT(report.err, Not(HasSubstr("skipped")));
  EXPECT_THAT(slurp(folder_ / "report.html"), HasSubstr("<h2 id=\"recommendation-heading\">"));
  const Outcome again = run("kvcalibrate", recommend("safe", {"--engine", "vllm", "--context", "64", "--text",
                                                              folder_ / "rays.txt", "--max-kl", "5.5", "--resume"}));
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("finished before"));
  std::filesystem::remove(folder_ / "safe/comparison.json");
  const Outcome anew = run("kvcalibrate", recommend("safe", {"--engine", "vllm", "--context", "64", "--text",
                                                             folder_ / "rays.txt", "--max-kl", "5.5", "--resume"}));
  EXPECT_EQ(anew.status, 0) << anew.err;
  EXPECT_THAT(anew.err, HasSubstr("comparison.json is missing or damaged: the run starts anew"));
  EXPECT_EQ(anew.out, outcome.out);
}

TEST_F(RecommendProgram, MeasuresThePackagesTypesAndItsMethodsInBoth) {
  write_text_of_rays(folder_ / "rays.txt", 12);
  const Outcome outcome = run("kvcalibrate", recommend("safe", {"--engine", "transformers-kvspectrum", "--context",
                                                                "64", "--text", folder_ / "rays.txt"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::set<std::string> labels;
  const Json comparison = config("safe/comparison.json");
  for (const Json& one : comparison.at("configurations")) labels.insert(one.at("label"));
  EXPECT_THAT(labels, IsSupersetOf({"int8_per_token_head", "fp8", "streaming", "h2o + q8_0"}));
}

TEST_F(RecommendProgram, AShortTextShortensTheContext) {
  write_text_of_rays(folder_ / "rays.txt", 3);
  const Outcome outcome =
      run("kvcalibrate", recommend("safe", {"--engine", "vllm", "--context", "512", "--text", folder_ / "rays.txt"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_LT(config("safe/recommendation.json").at("tokens"), 512);
  EXPECT_THAT(outcome.out, HasSubstr("the text is too short for a context of 512 tokens"));
}

TEST_F(RecommendProgram, KeepsAnotherTextOfTheSamplesName) {
  std::filesystem::create_directory(folder_ / "safe");
  std::ofstream(folder_ / "safe/sample.txt") << "a text";
  const Outcome outcome = run("kvcalibrate", recommend("safe", {"--engine", "vllm", "--context", "64"}));
  EXPECT_EQ(outcome.status, 7) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("sample.txt: found another text than the sample"));
  EXPECT_EQ(slurp(folder_ / "safe/sample.txt"), "a text");
}

TEST_F(RecommendProgram, RefusesWhatCannotBe) {
  write_text_of_rays(folder_ / "rays.txt", 12);
  const auto refusal = [&](std::vector<std::string> more, int status) {
    more.insert(more.end(), {"--text", folder_ / "rays.txt"});
    const Outcome outcome = run("kvcalibrate", recommend("safe", std::move(more)));
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "safe")) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refusal({"--engine", "vlm", "--context", "64"}, 2), HasSubstr("found 'vlm', expected one of llama.cpp"));
  EXPECT_THAT(refusal({"--engine", "transformers", "--context", "64"}, 4),
              AllOf(HasSubstr("found transformers, which executes"), HasSubstr("expected one of llama.cpp"),
                    HasSubstr("tensorrt-llm, transformers-kvspectrum")));
  EXPECT_THAT(refusal({"--engine", "vllm", "--context", "4096"}, 2), HasSubstr("the model's context of 2048"));
  EXPECT_THAT(refusal({"--engine", "vllm", "--context", "64", "--budget", "5%"}, 2),
              HasSubstr("the nearest is fp8 with 50 %"));
  EXPECT_THAT(refusal({"--engine", "vllm", "--context", "64", "--budget", "50%", "--max-kl", "1"}, 2),
              HasSubstr("--max-kl"));
}

}  // namespace
}  // namespace kvs::testing
