// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

TEST(SpectrumProgram, LiveAndFromACaptureAreTheSame) {
  const TemporaryFolder folder;
  write_tiny_model(folder / "model");
  write_tokens_file(folder / "tokens.jsonl", 3, 70);
  const std::vector<std::string> text{"--model", folder / "model", "--tokens-file", folder / "tokens.jsonl", "--window",
                                      "32",      "--quiet"};
  const auto with = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), text.begin(), text.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  ASSERT_EQ(run("kvspectrum", with({"capture"}, {"--out", folder / "c.h5"})).status, 0);
  for (const char* transform : {"dct", "dft"}) {
    const Outcome live =
        run("kvspectrum",
            with({"spectrum"}, {"--transform", transform, "--out-dir", folder / "live", "--json", "--force"}));
    ASSERT_EQ(live.status, 0) << live.err;
    const Outcome stored = run("kvspectrum", {"spectrum", "--capture", folder / "c.h5", "--transform", transform,
                                              "--out-dir", folder / "stored", "--json", "--quiet", "--force"});
    ASSERT_EQ(stored.status, 0) << stored.err;
    // k_post is recomputed from the stored k_pre by the same rotation, so even the numbers' digits agree.
    Json a = parse_json(live.out, "live"), b = parse_json(stored.out, "stored");
    EXPECT_EQ(a.at("states"), b.at("states"));
    // Its queries and output projections are not in the capture, all else is.
    Json &live_gain = a.at("coding_gain"), &stored_gain = b.at("coding_gain");
    EXPECT_TRUE(live_gain.at("left_out").empty());
    EXPECT_EQ(stored_gain.at("left_out").size(), 2U);
    for (const char* about : {"mean_removed", "mean_kept"}) {
      for (const char* state : {"k_pre", "k_post", "v"})
        EXPECT_EQ(live_gain.at(about).at(state).erase("weighted"), 1U) << state;
      EXPECT_EQ(live_gain.at(about), stored_gain.at(about));
    }
    for (const char* file :
         {"spectrum.h5", "spectrum.json", "spectrum_layers.svg", "spectrum_heads.png", "coding_gain.svg"})
      EXPECT_GT(slurp(folder / ("stored/" + std::string(file))).size(), 500U) << file;
  }
  const Outcome again =
      run("kvspectrum", {"spectrum", "--capture", folder / "c.h5", "--out-dir", folder / "stored", "--quiet"});
  EXPECT_EQ(again.status, 7);
  EXPECT_THAT(again.err, HasSubstr("stored/"));
}

TEST(SpectrumProgram, KilledRunsGoOnToTheSameGains) {
  const TemporaryFolder folder;
  write_tiny_model(folder / "model");
  write_tokens_file(folder / "tokens.jsonl", 4, 64);
  const auto words = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> all{"spectrum", "--model", folder / "model", "--tokens-file", folder / "tokens.jsonl",
                                 "--window", "64",      "--quiet",        "--out-dir",     folder / out};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  ASSERT_EQ(run("kvspectrum", words("whole", {})).status, 0);
  std::mt19937 random(3);
  run_with_kills("kvspectrum", words("killed", {}), words("killed", {"--resume"}), random);
  const auto gain = [&](const std::string& out) {
    return parse_json(slurp(folder / (out + "/spectrum.json")), out).at("coding_gain");
  };
  EXPECT_EQ(gain("killed"), gain("whole"));
}

TEST(SpectrumProgram, GainsCanBeLeftOutAndNeedTokens) {
  const TemporaryFolder folder;
  write_tiny_model(folder / "model");
  write_tokens_file(folder / "tokens.jsonl", 1, 12);
  const std::vector<std::string> words{
      "spectrum", "--model", folder / "model", "--tokens-file", folder / "tokens.jsonl",
      "--window", "12",      "--quiet",        "--out-dir",     folder / "out"};
  const Outcome few = run("kvspectrum", words);  // 8 tokens behind the sinks, 8 channels a head
  ASSERT_EQ(few.status, 0) << few.err;
  EXPECT_THAT(few.out, HasSubstr("left out: everything: found 8 tokens, expected at least 16"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out/coding_gain.svg"));
  std::vector<std::string> off = words;
  off.insert(off.end(), {"--gain", "off", "--force"});
  const Outcome none = run("kvspectrum", off);
  ASSERT_EQ(none.status, 0) << none.err;
  EXPECT_FALSE(parse_json(slurp(folder / "out/spectrum.json"), "json").contains("coding_gain"));
}

}  // namespace
}  // namespace kvs::testing
