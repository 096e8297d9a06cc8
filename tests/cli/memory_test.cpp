// SPDX-License-Identifier: Apache-2.0
// Commands where address space is limited, as by `ulimit -v`.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;

class LimitedMemory : public CalibratePrograms {
 protected:
  LimitedMemory() { std::filesystem::create_directory(folder_ / "out"); }

  /// The environment asks for more threads than there is room for: --threads goes before it. Expects 0, or 6 with one
  /// line, and no lock left.
  Outcome run_within(std::size_t mebibytes, const std::string& program, std::vector<std::string> words,
                     const std::string& threads = "") const {
    std::vector<std::string> all{"OMP_NUM_THREADS=1000", "prlimit", "--as=" + std::to_string(mebibytes << 20),
                                 std::string(KVS_BINARY_DIR) + "/" + program};
    if (const auto given = std::ranges::find(words, "--threads"); given != words.end()) *(given + 1) = threads;
    all.insert(all.end(), words.begin(), words.end());
    std::filesystem::remove_all(folder_ / "out");
    std::filesystem::create_directory(folder_ / "out");
    Outcome outcome = run("/usr/bin/env", all);
    const std::string which = words.front() + " --threads " + threads + " in " + std::to_string(mebibytes) + " MiB";
    EXPECT_TRUE(outcome.status == 0 || outcome.status == 6) << which << ": " << outcome.status << " " << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), outcome.status == 0 ? 0 : 1) << which << ": " << outcome.err;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "out"))
      EXPECT_NE(file.path().extension(), ".lock") << which;
    return outcome;
  }
  std::vector<std::string> factors() const { return elitekv("out/e.json", {"--rank", "8"}); }
};

TEST_F(LimitedMemory, IsEnoughForHelp) {
  for (const char* const program : {"kvspectrum", "kvcalibrate"})
    EXPECT_EQ(run_within(160, program, {"--help"}).status, 0) << program;
}

TEST_F(LimitedMemory, IsEnoughForASmallModelWhateverTheThreads) {
  for (const char* const threads : {"1", "8"}) {
    EXPECT_EQ(run_within(200, "kvcalibrate", with_text("eval", {"--method", "full"}), threads).status, 0);
    EXPECT_EQ(run_within(200, "kvspectrum", with_text("capture", {"--out", folder_ / "out/c.h5"}), threads).status, 0);
  }
}

TEST_F(LimitedMemory, ThatIsTooSmallForThreadsIsSaid) {
  const Outcome outcome = run_within(200, "kvcalibrate", with_text("eval", {"--method", "full"}), "1000");
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.err, HasSubstr("threads: found room for "));
}

TEST_F(LimitedMemory, ThatThreadsFillLeavesNoRoomForGeneratedCode) {
  for (std::size_t mebibytes = 196; mebibytes <= 232; mebibytes += 6)
    run_within(mebibytes, "kvcalibrate", with_text("eval", {"--method", "full"}), "64");
}

TEST_F(LimitedMemory, ThatIsTooSmallForDecompositionsIsSaid) {
  const Outcome outcome = run_within(400, "kvcalibrate", factors(), "1");
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.err, HasSubstr("memory: found less than 384 MiB of address space"));
  EXPECT_EQ(run_within(1000, "kvcalibrate", factors(), "1").status, 0);
}

}  // namespace
}  // namespace kvs::testing
