// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class LatencyProgram : public CalibratePrograms {
 protected:
  Outcome latency(const std::vector<std::string>& more) const {
    std::vector<std::string> words = with_text("latency", {"--lengths", "8,16", "--decode", "4", "--repeats", "2"});
    words.insert(words.end(), more.begin(), more.end());
    return run("kvcalibrate", words);
  }
};

TEST_F(LatencyProgram, TimesTheFullCacheAndOthersByLength) {
  ASSERT_EQ(run("kvcalibrate", with_text("eval", {"--method", "streaming", "--set", "cache_size=8", "--save-config",
                                                  folder_ / "saved.json"}))
                .status,
            0);
  const Outcome outcome = latency({"--cache", "freqkv cache_size=8 sinks=2", "dropping cache_size=8 sinks=2",
                                   "--config", folder_ / "saved.json", "--out", folder_ / "l.json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("freqkv cache_size=8 sinks=2"));
  const Json json = config("l.json");
  EXPECT_EQ(json.at("format"), "kvspectrum-latency");
  std::vector<std::string> labels;
  for (const Json& cache : json.at("caches")) {
    labels.push_back(cache.at("label"));
    for (const char* column : {"prefill_ms", "decode_ms", "prefill_ratio", "decode_ratio"}) {
      ASSERT_EQ(cache.at(column).size(), 2U);
      EXPECT_GT(cache.at(column)[1], 0) << column;
    }
  }
  EXPECT_THAT(labels,
              ::testing::ElementsAre("full", "freqkv cache_size=8 sinks=2", "dropping cache_size=8 sinks=2", "saved"));
  EXPECT_GT(slurp(folder_ / "l.svg").size(), 500U);
}

TEST_F(LatencyProgram, RefusesWhatItCannotTime) {
  const auto refuse = [&](int status, const std::vector<std::string>& more, const std::string& part) {
    const Outcome outcome = latency(more);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refuse(2, {"--cache", "nonesuch"}, "--cache: found 'nonesuch'");
  refuse(2, {"--cache", ""}, "--cache: found ''");
  refuse(2, {"--cache", "freqkv cache_size=8 width=3"}, "width");
  refuse(3, {"--config", folder_ / "nowhere.json"}, "nowhere.json");
  const Outcome outcome = run("kvcalibrate", with_text("latency", {"--lengths", "30", "--decode", "4"}));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("expected no more than --window's 32"));
}

}  // namespace
}  // namespace kvs::testing
