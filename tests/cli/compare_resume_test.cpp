// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "tests/cli/compare_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(ComparePrograms, AFinishedRunWhoseConfigsAreGoneStartsAnew) {
  auto words = compare("c.json", calibrated({"--timed-tokens", "1"}));
  ASSERT_EQ(run("kvcalibrate", words).status, 0);
  const auto configs = contents_of(folder_ / "c_calibrated");
  ASSERT_FALSE(configs.empty());
  words.emplace_back("--resume");
  EXPECT_THAT(run("kvcalibrate", words).out, HasSubstr("finished before"));
  std::filesystem::remove(folder_ / "c_speed.json");
  EXPECT_EQ(run("kvcalibrate", words).status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "c_speed.json"));
  std::filesystem::remove_all(folder_ / "c_calibrated");
  EXPECT_EQ(run("kvcalibrate", words).status, 0);
  EXPECT_EQ(difference(configs, contents_of(folder_ / "c_calibrated")), "");
}

TEST_F(ComparePrograms, KilledBetweenCalibrationsResumesToTheSameBytes) {
  const char* const more = std::getenv("KVS_KILLS");
  const int tries = more == nullptr ? 4 : std::atoi(more);
  const auto how = calibrated({"--timed-tokens", "0"});
  const auto start = std::chrono::steady_clock::now();
  compared("whole.json", how);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  const std::string whole = slurp(folder_ / "whole.json");
  const auto configs = contents_of(folder_ / "whole_calibrated");
  auto again = how;
  again.emplace_back("--resume");
  std::mt19937 random(7);
  for (int n = 0; n < tries; ++n) {
    for (const char* name : {"whole.json", "whole_pareto.svg", "whole_pareto.png", "whole_calibrated"})
      std::filesystem::remove_all(folder_ / name);
    run_with_kills("kvcalibrate", compare("whole.json", how), compare("whole.json", again), random,
                   static_cast<unsigned>(took.count()));
    EXPECT_EQ(slurp(folder_ / "whole.json"), whole);
    EXPECT_EQ(difference(configs, contents_of(folder_ / "whole_calibrated")), "");
  }
}

TEST_F(ComparePrograms, GoesOnWithTheSameLibrariesAlone) {
  const auto on = [&](const std::string& processor, std::vector<std::string> words) {
    words.insert(words.begin(), {"OPENBLAS_CORETYPE=" + processor, KVS_BINARY_DIR "/kvcalibrate"});
    return words;
  };
  const auto how = calibrated({"--timed-tokens", "0"});
  ASSERT_TRUE(run_until("/usr/bin/env", on("Haswell", compare("c.json", how)), folder_ / "c.json.journal", 1));
  auto again = how;
  again.emplace_back("--resume");
  const Outcome other = run("/usr/bin/env", on("Nehalem", compare("c.json", again)));
  EXPECT_EQ(other.status, 7) << other.err;
  EXPECT_THAT(other.err, HasSubstr("libraries.decompositions"));
}

TEST_F(ComparePrograms, KilledRunsResumeToTheSameBytes) {
  const auto remove_outputs = [&] {
    for (const char* name :
         {"whole.json", "whole_speed.json", "whole_pareto.svg", "whole_pareto.png", "whole_calibrated"})
      std::filesystem::remove_all(folder_ / name);
  };
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--no-early-stop"}, {"--time", "1h"}, {}, calibrated()}) {
    compared("whole.json", how);
    const std::string whole = slurp(folder_ / "whole.json");
    remove_outputs();
    std::mt19937 random(1);
    int killed = 0;
    for (int n = 0; n < 3; ++n) {
      auto again = how;
      again.emplace_back("--resume");
      killed += run_with_kills("kvcalibrate", compare("whole.json", how), compare("whole.json", again), random);
      EXPECT_EQ(slurp(folder_ / "whole.json"), whole);
      remove_outputs();
    }
    EXPECT_GT(killed, 0);
  }
}

}  // namespace
}  // namespace kvs::testing
