// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class ScoresProgram : public CalibratePrograms {
 protected:
  Outcome scores(const std::vector<std::string>& more) const {
    std::vector<std::string> words = with_text("scores", more);
    words.insert(words.end(), {"--out", folder_ / "s.json", "--force"});
    return run("kvspectrum", words);
  }
};

TEST_F(ScoresProgram, KeepsTheShareOfEachPartition) {
  const Outcome outcome = scores({"--sinks", "4", "--lag", "8", "--ratio", "0.25", "--window-index", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = config("s.json");
  EXPECT_EQ(json.at("format"), "kvspectrum-scores");
  EXPECT_EQ(json.at("tokens_scored"), 16);  // of 32 − 4 tokens two partitions have another behind them
  ASSERT_EQ(json.at("kept").size(), 4U);
  for (const Json& layer : json.at("kept"))
    for (const Json& head : layer) {
      ASSERT_EQ(head.size(), 4U);
      EXPECT_TRUE(head[0] >= 4 && head[1] < 12 && head[2] >= 12 && head[3] < 20) << head;
    }
  EXPECT_GT(slurp(folder_ / "s.svg").size(), 500U);
}

TEST_F(ScoresProgram, RefusesWhatDoesNotFit) {
  const auto refuse = [&](int status, const std::vector<std::string>& more, const std::string& part) {
    const Outcome outcome = scores(more);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  refuse(5, {}, "expected at least S + 2L = 272");
  refuse(2, {"--lag", "8", "--ratio", "0.1"}, "--ratio: found 0.1, which keeps none of 8 tokens");
  refuse(2, {"--lag", "8", "--window-index", "6"}, "--window-index");
}

}  // namespace
}  // namespace kvs::testing
