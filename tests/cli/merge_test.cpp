// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

/// 12 documents of 32 tokens.
class Merge : public ::testing::Test {
 protected:
  Merge() {
    write_tiny_model(folder_ / "model");
    write_tokens_file(folder_ / "tokens.jsonl", 6, 70);
  }
  std::vector<std::string> capture(const std::string& out, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--state-dtype", "bf16", "--out", folder_ / out});
    return words_on_texts("capture", folder_ / "model", folder_ / "tokens.jsonl", more);
  }
  std::vector<std::string> merge(const std::vector<std::string>& parts, const std::string& out,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"merge"};
    for (const std::string& part : parts) words.push_back(folder_ / part);
    words.insert(words.end(), {"--out", folder_ / out, "--quiet"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void expect_bytes_of_one_run(const std::string& name) const {
    ASSERT_EQ(run("kvspectrum", capture("whole.h5")).status, 0);
    for (const char* ending : {"", ".manifest.json"})
      EXPECT_TRUE(slurp(folder_ / (name + ending)) == slurp(folder_ / (std::string("whole.h5") + ending))) << ending;
  }
  void expect_refused(const std::vector<std::string>& words, int status, const std::string& line) const {
    const Outcome outcome = run("kvspectrum", words);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(line));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.h5"));
  }

  const std::vector<std::string> parts_{"a-00003-of-00003.h5", "a-00001-of-00003.h5", "a-00002-of-00003.h5"};
  TemporaryFolder folder_;
};

TEST_F(Merge, PartsJoinToTheBytesOfOneCapture) {
  ASSERT_EQ(run("kvspectrum", capture("a.h5", {"--parts", "5"})).status, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.h5"));
  std::vector<std::string> parts;
  for (const char* number : {"4", "2", "1", "5", "3"}) parts.push_back("a-0000" + std::string(number) + "-of-00005.h5");
  for (const std::string& part : parts) EXPECT_EQ(run("kvspectrum", {"verify", folder_ / part}).status, 0);
  const Outcome merged = run("kvspectrum", merge(parts, "out.h5", {"--json"}));
  ASSERT_EQ(merged.status, 0) << merged.err;
  EXPECT_EQ(parse_json(merged.out, "stdout").at("documents"), 12);
  expect_bytes_of_one_run("out.h5");
}

TEST_F(Merge, KilledCapturesAndMergesGoOn) {
  write_tokens_file(folder_ / "tokens.jsonl", 60, 70);
  std::mt19937 random(3);
  int kills = run_with_kills("kvspectrum", capture("a.h5", {"--parts", "3"}),
                             capture("a.h5", {"--parts", "3", "--resume"}), random);
  kills += run_with_kills("kvspectrum", merge(parts_, "out.h5"), merge(parts_, "out.h5", {"--resume"}), random);
  EXPECT_GT(kills, 0);
  expect_bytes_of_one_run("out.h5");
}

TEST_F(Merge, RefusesWhatAreNotAllPartsOfOneRun) {
  ASSERT_EQ(run("kvspectrum", capture("a.h5", {"--parts", "3"})).status, 0);
  ASSERT_EQ(run("kvspectrum", capture("b.h5", {"--parts", "3", "--documents", "6"})).status, 0);
  ASSERT_EQ(run("kvspectrum", capture("whole.h5")).status, 0);
  expect_refused(merge({parts_[0], parts_[1]}, "out.h5"), 3,
                 "a-00001-of-00003.h5: found 2 of its run's 3 parts, expected all of them");
  expect_refused(merge({parts_[0], parts_[1], parts_[1]}, "out.h5"), 3,
                 "a-00001-of-00003.h5: found part 1 twice, expected it once");
  expect_refused(merge({parts_[0], parts_[1], "b-00002-of-00003.h5"}, "out.h5"), 7, "b-00002-of-00003.h5");
  expect_refused(merge({"whole.h5"}, "out.h5"), 3, "found a whole capture, expected a part written with --parts");
  expect_refused(merge(parts_, parts_[1], {"--force"}), 2, parts_[1]);
}

TEST_F(Merge, RefusesADamagedPartAndSaysWhere) {
  ASSERT_EQ(run("kvspectrum", capture("a.h5", {"--parts", "3"})).status, 0);
  std::string bytes = slurp(folder_ / parts_[0]);
  bytes[bytes.size() - 100] ^= 4;
  std::ofstream(folder_ / parts_[0], std::ios::binary) << bytes;
  expect_refused(merge(parts_, "out.h5"), 3, "a-00003-of-00003.h5: /doc/00003/");
}

TEST_F(Merge, RefusesMorePartsThanDocuments) {
  expect_refused(capture("out.h5", {"--parts", "13"}), 2, "--parts: found 13, expected at most the 12 documents");
  expect_refused(capture("out.h5", {"--parts", "0"}), 2, "--parts");
}

TEST_F(Merge, ARunThatWasStoppedGoesOnWithItsOwnPartsAlone) {
  write_tokens_file(folder_ / "tokens.jsonl", 200, 70);
  ASSERT_EQ(run_and_interrupt("kvspectrum", capture("a.h5", {"--parts", "3"}), folder_ / "a-00001-of-00003.h5.journal")
                .status,
            130);
  const auto kept = contents_of(folder_ / "");
  for (const char* const parts : {"1", "4", "12"})
    for (const std::vector<std::string>& how :
         {std::vector<std::string>{"--parts", parts, "--resume"}, {"--parts", parts}}) {
      const Outcome outcome = run("kvspectrum", capture("a.h5", how));
      EXPECT_EQ(outcome.status, 7) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("found an unfinished run with another --parts"));
    }
  EXPECT_EQ(run("kvspectrum", capture("a.h5", {"--resume"})).status, 7) << "one file";
  EXPECT_EQ(difference(kept, contents_of(folder_ / "")), "");
  ASSERT_EQ(run("kvspectrum", capture("a.h5", {"--parts", "4", "--force"})).status, 0);
  for (const auto& [name, bytes] : contents_of(folder_ / ""))
    EXPECT_FALSE(name.ends_with(".partial") || name.ends_with(".journal") || name.ends_with(".lock")) << name;
}

TEST_F(Merge, TakesFilesAfterTwoDashes) {
  ASSERT_EQ(run("kvspectrum", capture("a.h5", {"--parts", "3"})).status, 0);
  std::vector<std::string> words{"merge", "--out", folder_ / "out.h5", "--quiet", "--"};
  for (const std::string& part : parts_) words.push_back(folder_ / part);
  ASSERT_EQ(run("kvspectrum", words).status, 0);
  expect_bytes_of_one_run("out.h5");
}

}  // namespace
}  // namespace kvs::testing
