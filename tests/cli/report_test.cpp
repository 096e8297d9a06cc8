// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ReportProgram : public CalibratePrograms {
 protected:
  void expect_done(const std::string& program, const std::vector<std::string>& words) const {
    const Outcome outcome = run(program, words);
    ASSERT_EQ(outcome.status, 0) << words[0] << ": " << outcome.err;
  }
  /// One of each result that needs no tokenizer.
  void make_results() const {
    std::filesystem::create_directories(folder_ / "results");
    expect_done("kvspectrum", with_text("spectrum", {"--out-dir", folder_ / "results/spectrum"}));
    expect_done("kvcalibrate", faedkv("results/faedkv.json"));
    expect_done("kvcalibrate", elitekv("results/elitekv.json", {"--rank", "8"}));
    evaluate("results/full.eval.json", {"--method", "full"});
    evaluate("results/lagkv.eval.json", {"--method", "lagkv", "--set", "lag=4", "ratio=0.25", "sinks=2"});
    const Outcome cost = run("kvcalibrate", {"cost", "--model", folder_ / "model", "--json"});
    ASSERT_EQ(cost.status, 0) << cost.err;
    write("results/cost.json", cost.out);
  }
  void evaluate(const std::string& out, std::vector<std::string> how, const std::string& model = "model") const {
    how.insert(how.end(), {"--out", folder_ / out});
    expect_done("kvcalibrate", with_text("eval", how, model));
  }
  void write(const std::string& name, const std::string& words) const { std::ofstream(folder_ / name) << words; }
  Outcome report(std::vector<std::string> words) const {
    words.insert(words.begin(), "report");
    words.insert(words.end(), {"--out", folder_ / "report.html"});
    return run("kvspectrum", words);
  }
  std::string page() const { return slurp(folder_ / "report.html"); }
};

TEST_F(ReportProgram, MakesOnePageOfWhatBothProgramsWrite) {
  make_results();
  write("results/notes.txt", "not ours");
  write("results/other.json", R"({"format": "another program's"})");
  write("results/states.h5.manifest.json", "{}");
  const Outcome outcome = report({folder_ / "results"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("from 6 results"));
  EXPECT_THAT(outcome.err, HasSubstr("note: skipped files that are not results: notes.txt, other.json\n"));
  for (const char* id : {"power-0-k_pre", "share-0-v", "elite-0-shares", "ablation-0-map", "ablation-0-intervals",
                         "evaluations-0", "findings", "cost", "configs", "model"})
    EXPECT_THAT(page(), HasSubstr("id=\"" + std::string(id) + "\""));
  for (const char* outside : {" src=", "url(", "@import", "https:"}) EXPECT_THAT(page(), Not(HasSubstr(outside)));
  EXPECT_THAT(page(), HasSubstr("kvcalibrate faedkv --model"));
}

TEST_F(ReportProgram, TakesFilesByNameAndReplacesAPageOnlyWithForce) {
  evaluate("full.eval.json", {"--method", "full"});
  ASSERT_EQ(report({folder_ / "full.eval.json"}).status, 0);
  const Outcome again = report({folder_ / "full.eval.json"});
  EXPECT_EQ(again.status, 7);
  EXPECT_THAT(again.err, HasSubstr("report.html"));
  // The page lies in the folder that it is made from, twice.
  const Outcome forced = report({folder_ / "", folder_ / "full.eval.json", "--force", "--json"});
  EXPECT_EQ(forced.status, 0) << forced.err;
  EXPECT_EQ(parse_json(forced.out, "stdout").at("results"), 1);
}

TEST_F(ReportProgram, RefusesResultsOfTwoModelsAndNamesBoth) {
  write_tiny_model(folder_ / "biased", TinyKind::kBiased);
  evaluate("a.json", {"--method", "full"});
  evaluate("b.json", {"--method", "full"}, "biased");
  const Outcome outcome = report({folder_ / "a.json", folder_ / "b.json"});
  EXPECT_EQ(outcome.status, 7);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("b.json: /model/sha256: found "), HasSubstr("a.json")));
  EXPECT_THAT(outcome.err, HasSubstr(config("a.json").at("model").at("sha256").get<std::string>()));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "report.html"));
}

TEST_F(ReportProgram, RefusesWhatIsNoResultInOneLine) {
  write("other.json", R"({"a": 1, "b": 2})");
  write("broken.json", "{");
  write("newer.json", R"({"format": "kvspectrum-comparison", "version": 2})");
  std::filesystem::create_directories(folder_ / "empty");
  const auto refuse = [&](const std::string& name, int status, const std::string& part) {
    const Outcome outcome = report({folder_ / name});
    EXPECT_EQ(outcome.status, status) << name;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  refuse("other.json", 3, "expected a result of kvspectrum or kvcalibrate");
  refuse("broken.json", 3, "broken.json: line 1");
  refuse("missing.json", 3, "missing.json");
  refuse("newer.json", 4, "newer.json: /version: found 2, expected at most 1");
  refuse("empty", 3, "empty: found no result");
  EXPECT_EQ(report({}).status, 2);
}

TEST_F(ReportProgram, DestroysNoneOfItsInputs) {
  evaluate("a.json", {"--method", "full"});
  const Outcome outcome = run("kvspectrum", {"report", folder_ / "a.json", "--out", folder_ / "a.json", "--force"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the output is the input"));
  EXPECT_EQ(config("a.json").at("method"), "full");
}

}  // namespace
}  // namespace kvs::testing
