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
    for (const char* file : {"spectrum.h5", "spectrum.json", "spectrum_layers.svg", "spectrum_heads.png"})
      EXPECT_GT(slurp(folder / ("stored/" + std::string(file))).size(), 500U) << file;
  }
  const Outcome again =
      run("kvspectrum", {"spectrum", "--capture", folder / "c.h5", "--out-dir", folder / "stored", "--quiet"});
  EXPECT_EQ(again.status, 7);
  EXPECT_THAT(again.err, HasSubstr("stored/"));
}

}  // namespace
}  // namespace kvs::testing
