// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string_view>

#include "tests/mpi/ranks.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// The number of kills of each command: one, or KVS_MPI_KILLS.
int kills_of_each() {
  int kills = 1;
  if (const char* const text = std::getenv("KVS_MPI_KILLS"))
    std::from_chars(text, text + std::string_view(text).size(), kills);
  return kills;
}

class Kills : public Ranks, public ::testing::WithParamInterface<SharedCommand> {};

TEST_P(Kills, AnotherNumberOfRanksGoesOnToTheSameBytes) {
  write_texts(24);
  const std::string& program = GetParam().program;
  const auto words = words_of(GetParam());
  auto again = words;
  again.emplace_back("--resume");
  const auto expected = outputs_after(run(program, words), program);
  const auto start = std::chrono::steady_clock::now();
  outputs_after(run_ranks(3, program, words), program);
  const std::chrono::duration<double, std::milli> whole = std::chrono::steady_clock::now() - start;
  std::mt19937 random(std::random_device{}());
  std::uniform_real_distribution<double> moment(0, whole.count());
  for (int n = 0; n < kills_of_each(); ++n) {
    const int ranks = 2 + static_cast<int>(random() % 3), others = ranks % 4 + 1;
    const Kill kill{.output = output_of(GetParam()),
                    .milliseconds = static_cast<int>(moment(random)),
                    .victim = static_cast<unsigned>(random())};
    Outcome outcome = run_ranks_and_kill_one(ranks, program, words, kill).outcome;
    if (outcome.status != 0) outcome = run_ranks(others, program, again);
    EXPECT_EQ(difference(expected, outputs_after(outcome, program)), "")
        << "kill " << n << " of process " << kill.victim << " after " << kill.milliseconds << " ms, ranks: " << ranks;
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, Kills, ::testing::ValuesIn(shared_commands()), name_of_command);

TEST_F(Ranks, ADeadOneEndsTheRunWithItsNameHostAndDocument) {
  write_texts(400);
  const std::filesystem::path out = folder_ / "out" / "e.json";
  const auto words = with_text("eval", {"--method", "full", "--out", out});
  int kills = 0;
  for (unsigned victim = 0; victim < 6; ++victim) {  // a rank is two processes, one of which watches the other
    const Killed killed =
        run_ranks_and_kill_one(3, "kvcalibrate", words, {.output = out, .journal = ".journal", .victim = victim});
    std::filesystem::remove_all(folder_ / "out");
    std::filesystem::create_directory(folder_ / "out");
    if (killed.outcome.status == 0) continue;  // it had ended
    ++kills;
    EXPECT_LT(killed.seconds, 30);
    const auto lines = own_lines(killed.outcome.err, "kvcalibrate");
    ASSERT_THAT(lines, SizeIs(1)) << killed.outcome.err;
    EXPECT_THAT(lines.front(), StartsWith("kvcalibrate: error: rank ")) << victim;
    EXPECT_THAT(lines.front(), HasSubstr(" on ")) << victim;
    EXPECT_THAT(lines.front(), HasSubstr("document")) << victim;
  }
  EXPECT_GE(kills, 3);
}

}  // namespace
}  // namespace kvs::testing
