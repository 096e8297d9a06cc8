#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

/// Configs of the tiny random model: elite.json (disjoint sets, factors of rank 24) and lagkv.json.
class ExportProgram : public ::testing::Test {
 protected:
  ExportProgram() {
    write_tiny_model(folder_ / "model");
    write_tokens_file(folder_ / "tokens.jsonl", 2, 40);
    calibrate("model",
              {"--rank", "24", "--allow-more-parameters", "--disjoint", "on", "--out", folder_ / "elite.json"});
  }
  std::vector<std::string> with_text(const std::string& command, const std::string& model) const {
    return {command,    "--model", folder_ / model, "--tokens-file", folder_ / "tokens.jsonl",
            "--window", "32",      "--quiet",       "--threads",     "1"};
  }
  void calibrate(const std::string& model, const std::vector<std::string>& more) const {
    auto words = with_text("elitekv", model);
    words.insert(words.end(), {"--elite", "2"});
    words.insert(words.end(), more.begin(), more.end());
    const Outcome made = run("kvcalibrate", words);
    ASSERT_EQ(made.status, 0) << made.err;
  }
  Outcome to(const std::string& name, const std::string& out, const std::vector<std::string>& more = {},
             const std::string& config = "elite.json", const std::string& model = "model") const {
    std::vector<std::string> words{"export",  "--to",          name,    "--config",    folder_ / config,
                                   "--model", folder_ / model, "--out", folder_ / out, "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run("kvcalibrate", words);
  }
  TemporaryFolder folder_;
};

TEST_F(ExportProgram, NamesWhatItCanWrite) {
  const Outcome help = run("kvcalibrate", {"export", "--help"});
  EXPECT_THAT(help.out, HasSubstr("  mha2mla-rank  "));
  const Outcome unknown = to("gguf-llama", "x");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("found 'gguf-llama', expected one of "));
  EXPECT_THAT(unknown.err, HasSubstr("mha2mla-rank"));
}

TEST_F(ExportProgram, ReplacesAFileByForceAlone) {
  ASSERT_EQ(to("mha2mla-rank", "ranks.pt").status, 0);
  const std::string written = slurp(folder_ / "ranks.pt");
  EXPECT_EQ(to("elitekv-rank", "ranks.pt").status, 7);
  EXPECT_EQ(slurp(folder_ / "ranks.pt"), written);
  EXPECT_EQ(to("elitekv-rank", "ranks.pt", {"--force"}).status, 0);
  EXPECT_NE(slurp(folder_ / "ranks.pt"), written);
}

TEST_F(ExportProgram, SparesItsInputs) {
  for (const std::string out : {"elite.json", "elite.safetensors", "model/ranks.pt"}) {
    const Outcome refused = to("mha2mla-rank", out, {"--force"});
    EXPECT_EQ(refused.status, 2) << out << refused.err;
  }
}

TEST_F(ExportProgram, RefusesAConfigOfAnotherMethodOrModel) {
  auto words = with_text("eval", "model");
  words.insert(words.end(), {"--method", "lagkv", "--set", "lag=4", "sinks=2", "ratio=0.5", "--save-config",
                             folder_ / "lagkv.json"});
  ASSERT_EQ(run("kvcalibrate", words).status, 0);
  const Outcome method = to("mha2mla-rank", "x", {}, "lagkv.json");
  EXPECT_EQ(method.status, 4);
  EXPECT_THAT(method.err, HasSubstr("found lagkv, expected elitekv"));
  write_tiny_model(folder_ / "other", TinyKind::kBiased);
  EXPECT_EQ(to("mha2mla-rank", "x", {}, "elite.json", "other").status, 7);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
}

TEST_F(ExportProgram, RefusesSetsOfSomeLayers) {
  calibrate("model", {"--layers", "1,2", "--out", folder_ / "some.json"});
  const Outcome some = to("elitekv-rank", "x", {}, "some.json");
  EXPECT_EQ(some.status, 4);
  EXPECT_THAT(some.err, HasSubstr("found 2 of 4 layers"));
}

}  // namespace
}  // namespace kvs::testing
