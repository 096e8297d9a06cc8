// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class RetainProgram : public CalibratePrograms {
 protected:
  Outcome retain(const std::vector<std::string>& more) const {
    std::vector<std::string> words = with_text("retain", more);
    words.insert(words.end(), {"--out", folder_ / "r.json", "--force"});
    return run("kvspectrum", words);
  }
  static double at(const Json& result, const std::string& band, const std::string& states, std::size_t share) {
    for (const Json& curve : result.at("curves"))
      if (curve.at("band") == band && curve.at("states") == states) return curve.at("ppl").at(share).get<double>();
    ADD_FAILURE() << "no curve " << band << ' ' << states;
    return 0;
  }
};

TEST_F(RetainProgram, AllOfTheSpectrumGivesTheFullCachesPerplexity) {
  ASSERT_EQ(retain({"--kept-shares", "1,0.25", "--prefix", "20"}).status, 0);
  const Json result = config("r.json");
  EXPECT_EQ(result.at("format"), "kvspectrum-retention");
  const double full = perplexity({"--method", "full", "--set", "prefix=20"});
  EXPECT_NEAR(result.at("ppl_full").get<double>() / full, 1, 1e-5);
  for (const char* band : {"low", "high"})
    for (const char* states : {"k", "v", "kv"}) {
      EXPECT_NEAR(at(result, band, states, 0) / full, 1, 1e-4) << band << states;
      EXPECT_GT(std::abs(at(result, band, states, 1) / full - 1), 1e-3) << band << states;
    }
  EXPECT_GT(slurp(folder_ / "r.svg").size(), 500U);
}

TEST_F(RetainProgram, AConfigsChunksAreKeptByTheirDelta) {
  ASSERT_EQ(run("kvcalibrate", faedkv("f.json")).status, 0);
  const Outcome outcome = retain({"--config", folder_ / "f.json", "--kept-shares", "0.5"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json result = config("r.json");
  EXPECT_EQ(result.at("unit"), "chunk");
  EXPECT_EQ(result.at("units"), 4);
  EXPECT_EQ(result.at("kept"), Json({2}));
  EXPECT_EQ(result.at("key_space"), "k_post");
  // Documents, model and chunks are those of the calibration's own last pass.
  EXPECT_NEAR(at(result, "best", "kv", 0) / config("f.json").at("quality").at("ppl").get<double>(), 1, 1e-6);
}

TEST_F(RetainProgram, RefusesWhatDoesNotFit) {
  const auto refuse = [&](int status, const std::vector<std::string>& more, const std::string& part) {
    const Outcome outcome = retain(more);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refuse(2, {"--kept-shares", "0.5,0"}, "--kept-shares: found '0'");
  refuse(2, {"--kept-shares", "half"}, "--kept-shares: found 'half'");
  refuse(2, {"--prefix", "31"}, "--prefix");
  refuse(2, {"--sinks", "20", "--recent", "5"}, "--prefix: found 24 tokens");
  ASSERT_EQ(run("kvcalibrate", faedkv("f.json")).status, 0);
  refuse(2, {"--config", folder_ / "f.json", "--layers", "0"}, "--layers: cannot be combined with --config");
  write_tiny_model(folder_ / "model", TinyKind::kBiased);
  refuse(7, {"--config", folder_ / "f.json"}, "f.json");
  write_tiny_model(folder_ / "model");
  ASSERT_EQ(run("kvcalibrate", elitekv("e.json")).status, 0);
  refuse(3, {"--config", folder_ / "e.json"}, "found a config of elitekv");
}

}  // namespace
}  // namespace kvs::testing
