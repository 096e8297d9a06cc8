// SPDX-License-Identifier: Apache-2.0
// Models whose layers exceed --weights-budget: results are those of a model in memory.
#include <gmock/gmock.h>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class StreamedModels : public CalibratePrograms {
 protected:
  /// Runs a command with all layers in memory and with streamed layers, and compares members of the results.
  void expect_equal(const std::string& program, const std::string& command, const std::string& out,
                    const std::vector<std::string>& more, const std::vector<std::string>& members) const {
    for (const bool streamed : {false, true}) {
      std::vector<std::string> words = with_text(command, more);
      words.insert(words.end(), {out, folder_ / name(command, streamed)});
      if (streamed) words.insert(words.end(), {"--weights-budget", "200KiB"});
      std::erase(words, "--quiet");
      const Outcome made = run(program, words);
      ASSERT_EQ(made.status, 0) << command << ": " << made.err;
      EXPECT_EQ(made.err.find("layers are read from disk") != std::string::npos, streamed) << command << made.err;
    }
    for (const std::string& member : members)
      EXPECT_EQ(result(command, true, member), result(command, false, member)) << command << ": " << member;
  }

 private:
  Json result(const std::string& command, bool streamed, const std::string& member) const {
    const std::string file = command == "spectrum" ? "/spectrum.json" : "";
    Json found = config(name(command, streamed) + file).at(member);
    if (found.is_object()) found.erase("command");
    return found;
  }
  static std::string name(const std::string& command, bool streamed) {
    return command + (streamed ? "-streamed.json" : "-whole.json");
  }
};

TEST_F(StreamedModels, GiveTheSameSpectra) {
  expect_equal("kvspectrum", "spectrum", "--out-dir", {}, {"states", "coding_gain"});
}

TEST_F(StreamedModels, GiveTheSameRetention) {
  expect_equal("kvspectrum", "retain", "--out", {"--kept-shares", "1,0.25", "--prefix", "20"}, {"ppl_full", "curves"});
}

TEST_F(StreamedModels, GiveTheSameConfigs) {
  const std::vector<std::string> members{"parameters", "calibration"};
  expect_equal("kvcalibrate", "elitekv", "--out", {"--elite", "2", "--norm", "1"}, members);
  expect_equal("kvcalibrate", "transform", "--out", {"--budget", "50%", "--sinks", "1", "--recent", "2"},
               {"parameters", "calibration", "quality"});
  expect_equal("kvcalibrate", "faedkv", "--out", {"--chunks", "4", "--sinks", "2", "--recent", "3"}, members);
  expect_equal("kvcalibrate", "store", "--out", {"--scale", "best"}, members);
}

TEST_F(StreamedModels, GiveTheSameTypesForABudget) {
  expect_equal("kvcalibrate", "store", "--out", {"--budget", "100%", "--per-layer-rounds", "1"},
               {"parameters", "calibration"});
}

}  // namespace
}  // namespace kvs::testing
