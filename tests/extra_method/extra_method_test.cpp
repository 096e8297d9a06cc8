// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class ExtraMethod : public ::testing::Test {
 protected:
  ExtraMethod() {
    write_tiny_model(folder_ / "model");
    write_tokens_file(folder_ / "tokens.jsonl", 3, 70);
  }
  std::string said(const std::string& program, const std::vector<std::string>& words) const {
    const Outcome outcome = run(program, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  }
  std::vector<std::string> on_texts(const std::string& command, const std::vector<std::string>& more) const {
    return words_on_texts(command, folder_ / "model", folder_ / "tokens.jsonl", more);
  }

  TemporaryFolder folder_;
};

TEST_F(ExtraMethod, IsInTheHelpOfCommandsAndHasOneOfItsOwn) {
  for (const char* const command : {"eval", "generate", "latency"})
    EXPECT_THAT(said("kvcalibrate", {command, "--help", "all"}), HasSubstr("  extra: turns=3")) << command;
  std::string methods = said("kvcalibrate", {"compare", "--help", "all"});
  std::erase_if(methods, [](char letter) { return letter == ' ' || letter == '\n'; });  // a list breaks anywhere
  EXPECT_THAT(methods, HasSubstr("kvtc,extra]"));
  const std::string help = said("kvcalibrate", {"eval", "--help", "--method", "extra"});
  for (const char* const part : {"the Extra method", "Nobody (2026)", "turns that have no effect (at least 1)"})
    EXPECT_THAT(help, HasSubstr(part));
}

TEST_F(ExtraMethod, IsInInfoWithItsNotes) {
  const std::string info = said("kvspectrum", {"info", folder_ / "model"});
  EXPECT_THAT(info, HasSubstr("yes  extra"));
  EXPECT_THAT(info, HasSubstr("turns have no effect on this model"));
}

TEST_F(ExtraMethod, IsInTheSchemaWithItsParameters) {
  const Json schema = parse_json(said("kvcalibrate", {"validate", "--schema"}), "schema");
  EXPECT_THAT(schema.at("properties").at("method").at("enum").get<std::vector<std::string>>(),
              ::testing::Contains("extra"));
  EXPECT_EQ(
      schema.at("definitions").at("extra_parameters").at("properties").at("turns").at("anyOf").at(0).at("minimum"), 1);
}

TEST_F(ExtraMethod, RunsItsConfigsAndTheReportNamesIt) {
  (void)said("kvcalibrate", on_texts("eval", {"--method", "extra", "--set", "type=fp8", "--out", folder_ / "eval.json",
                                              "--save-config", folder_ / "extra.json"}));
  EXPECT_EQ(run("kvcalibrate", {"validate", folder_ / "extra.json"}).status, 0);
  (void)said("kvcalibrate", on_texts("eval", {"--config", folder_ / "extra.json"}));
  (void)said("kvspectrum", {"report", folder_ / "eval.json", "--out", folder_ / "page.html"});
  EXPECT_THAT(slurp(folder_ / "page.html"), HasSubstr("extra + fp8"));
}

TEST_F(ExtraMethod, IsCompared) {
  (void)said("kvcalibrate", on_texts("compare", {"--methods", "extra", "--types-with-methods", "fp8", "--timed-tokens",
                                                 "0", "--out", folder_ / "compare.json"}));
  EXPECT_THAT(slurp(folder_ / "compare.json"), HasSubstr("extra, turns 2 + fp8"));
}

}  // namespace
}  // namespace kvs::testing
