// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/text_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class PerturbProgram : public TextPrograms {
 protected:
  PerturbProgram() {
    write_small_wordnet(folder_ / "wordnet");
    write_text_of_rays(folder_ / "text.txt", 40);
  }
  Outcome perturb(std::vector<std::string> more) const {
    std::vector<std::string> words{"perturb", "--model", folder_ / "model", "--text", folder_ / "text.txt"};
    words.insert(words.end(), {"--window", "128", "--quiet", "--threads", "1", "--out", folder_ / "p.json"});
    words.insert(words.end(), more.begin(), more.end());
    return run("kvspectrum", words);
  }
};

TEST_F(PerturbProgram, ReportsSimilaritiesByLayerStateAndBand) {
  const Outcome outcome = perturb({"--wordnet", folder_ / "wordnet", "--share", "0.05", "--layers", "0,2"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = parse_json(slurp(folder_ / "p.json"), "p.json");
  EXPECT_EQ(json.at("format"), "kvspectrum-perturbation");
  EXPECT_EQ(json.at("tokens"), 120);  // 15/16 of the window
  EXPECT_EQ(json.at("layers"), Json({0, 2}));
  // Each character is a token, and so "beam" takes as many as "rays".
  EXPECT_EQ(json.at("documents").at("other_count"), 0);
  EXPECT_EQ(json.at("documents").at("same_count").get<int>() + json.at("documents").at("left_out").get<int>(), 12);
  for (const char* state : {"k_pre", "v"}) {
    const Json& bands = json.at("states").at(state).at("same_count");
    for (const char* band : {"low", "low_without_dc", "high"}) {
      ASSERT_EQ(bands.at(band).at("mean").size(), 2U);
      // Four letters of 120 differ: alike, but not the same.
      EXPECT_GT(bands.at(band).at("mean")[1], 0.5);
      EXPECT_LT(bands.at(band).at("mean")[1], 0.9999);
      EXPECT_LE(bands.at(band).at("interval")[1][0], bands.at(band).at("mean")[1]);
    }
  }
  EXPECT_GT(slurp(folder_ / "p.svg").size(), 500U);
  const Outcome again = perturb({"--wordnet", folder_ / "wordnet", "--share", "0.05", "--layers", "0,2"});
  EXPECT_EQ(again.status, 7);
}

TEST_F(PerturbProgram, ASeedGivesTheSameBytes) {
  std::vector<std::string> results;
  for (const char* seed : {"1", "1", "2"}) {
    ASSERT_EQ(perturb({"--wordnet", folder_ / "wordnet", "--seed", seed, "--force"}).status, 0);
    results.push_back(slurp(folder_ / "p.json"));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0], results[2]);
}

TEST_F(PerturbProgram, SaysWhatIsMissing) {
  const auto refuse = [&](int status, const std::vector<std::string>& more, const std::string& part) {
    const Outcome outcome = perturb(more);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "p.json"));
  };
  refuse(6, {"--wordnet", folder_ / "nowhere"}, "apt-get install wordnet-base");
  const std::string wordnet = folder_ / "wordnet";
  refuse(2, {"--wordnet", wordnet, "--share", "2"}, "--share");
  refuse(2, {"--wordnet", wordnet, "--compared-tokens", "129"}, "--compared-tokens");
  refuse(2, {"--wordnet", wordnet, "--layers", "4"}, "--layers");
  refuse(2, {"--wordnet", wordnet, "--tokens-file", folder_ / "tokens.jsonl"}, "--tokens-file");
  std::ofstream(folder_ / "wordnet/index.noun") << "if n 1 0 1 0 00000000  \n";
  refuse(5, {"--wordnet", wordnet}, "found no document");
  std::ofstream(folder_ / "wordnet/index.noun") << "rays n 1 0 1 0 00000007  \n";
  refuse(3, {"--wordnet", wordnet}, "data.noun: offset 7");
}

TEST_F(PerturbProgram, SparesWordnet) {
  const std::filesystem::path index = folder_ / "wordnet/index.noun";
  const std::string before = slurp(index);
  std::filesystem::create_hard_link(index, folder_ / "p.json");
  const Outcome outcome = perturb({"--wordnet", folder_ / "wordnet", "--force"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("p.json: the output is the input"));
  EXPECT_EQ(slurp(index), before);
}

}  // namespace
}  // namespace kvs::testing
