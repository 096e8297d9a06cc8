// SPDX-License-Identifier: Apache-2.0
// Every command with limited address space, as by `ulimit -v`: it exits with 0, or with 6, one line and no lock.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "tests/faults/commands.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLeast = 160, kMost = 1000, kStep = 20;  // MiB; below, the loader itself fails

/// Far above the time of a run when many others run: a run that takes longer hangs.
constexpr const char* kMaxSeconds = "200";

/// All limits, or two and the last.
std::set<std::size_t> limits(std::size_t seed) {
  std::set<std::size_t> chosen{kMost};
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  for (std::size_t limit = kLeast; tries_all() && limit < kMost; limit += kStep) chosen.insert(limit);
  while (chosen.size() < 3) chosen.insert(kLeast + kStep * (random() % ((kMost - kLeast) / kStep)));
  return chosen;
}

class LimitedProgramTest : public ::testing::Test {
 protected:
  LimitedProgramTest() { make_fault_inputs(inputs_); }

  Outcome run_within(const FaultyCommand& command, std::size_t mebibytes, const std::string& threads) const {
    std::vector<std::string> words{"OMP_WAIT_POLICY=passive",  // the machine is not this test's alone
                                   "OMP_NUM_THREADS=" + threads,
                                   "timeout",
                                   "--signal=KILL",
                                   kMaxSeconds,
                                   "prlimit",
                                   "--as=" + std::to_string(mebibytes << 20),
                                   std::string(KVS_BINARY_DIR) + "/" + command.program};
    words.insert(words.end(), command.arguments.begin(), command.arguments.end());
    fs::remove_all(out_);
    fs::create_directory(out_);
    return run("/usr/bin/env", words);
  }

  /// For a command with --threads the environment asks for more threads than there is space for: the option takes
  /// precedence.
  static std::string environment_of(const FaultyCommand& command, const std::string& threads) {
    const bool given = std::ranges::find(command.arguments, "--threads") != command.arguments.end();
    return given ? "1000" : threads;
  }

  TemporaryFolder inputs_, root_;
  const std::string out_ = root_ / "out";
};

TEST_F(LimitedProgramTest, WhoseThreadsCannotBeMadeLeavesNoTemporary) {
  int exports = 0;
  for (const FaultyCommand& command : faulty_commands(inputs_, out_)) {
    if (command.name != "export_hf" && command.name != "export_gguf") continue;  // lists of ranks need no threads
    const Outcome outcome = run_within(command, 300, "1000");
    EXPECT_EQ(outcome.status, 6) << outcome.err;
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("threads: cannot be made"));
    EXPECT_THAT(contents_of(out_), ::testing::IsEmpty());
    ++exports;
  }
  EXPECT_EQ(exports, 2);
}

class MemoryLimitsTest : public LimitedProgramTest, public ::testing::WithParamInterface<std::size_t> {
 protected:
  /// @param files  the files of a run without a limit
  void expect_order(const FaultyCommand& command, const Outcome& outcome,
                    const std::map<std::string, std::string>& files, bool same_bytes) const {
    EXPECT_THAT(outcome.status, ::testing::AnyOf(0, 6)) << outcome.err;
    std::string lines = outcome.err;
    if (lines.starts_with("note: ")) lines.erase(0, lines.find('\n') + 1);  // for a GGUF without tokenizer
    EXPECT_EQ(std::ranges::count(lines, '\n'), outcome.status == 0 ? 0 : 1) << outcome.err;
    const auto found = contents_of(out_);
    for (const auto& [name, bytes] : found) {
      EXPECT_FALSE(name.ends_with(".lock") || name.ends_with(".tmp")) << name;
      const bool is_output = std::ranges::find(command.outputs, name) != command.outputs.end();
      EXPECT_FALSE(outcome.status != 0 && is_output) << name;
    }
    if (outcome.status != 0) return;
    for (const auto& [name, bytes] : found) EXPECT_TRUE(files.contains(name)) << name;
    for (const auto& [name, bytes] : files) {
      if (name.ends_with(".png") && !found.contains(name)) continue;  // rsvg-convert has the same limit
      EXPECT_TRUE(found.contains(name) && (command.varies || !same_bytes || found.at(name) == bytes))
          << name << ": missing, or other bytes";
    }
  }
};

TEST_P(MemoryLimitsTest, EndEveryRunInOrder) {
  for (const std::string threads : {"1", "8"}) {
    const FaultyCommand command = faulty_commands(inputs_, out_, threads).at(GetParam());
    ASSERT_EQ(run_within(command, std::size_t{1} << 20, environment_of(command, "1")).status, 0);
    const auto files = contents_of(out_);
    for (const std::size_t limit : limits(GetParam())) {
      SCOPED_TRACE(command.name + " --threads " + threads + " in " + std::to_string(limit) + " MiB");
      const Outcome outcome = run_within(command, limit, environment_of(command, threads));
      expect_order(command, outcome, files, threads == "1");
      if (limit == kMost && threads == "1") {
        EXPECT_EQ(outcome.status, 0) << outcome.err;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MemoryLimitsTest, ::testing::Range<std::size_t>(0, faulty_command_count()),
                         [](const auto& of) { return name_of_faulty_command(of.param); });

}  // namespace
}  // namespace kvs::testing
