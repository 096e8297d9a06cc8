#include <cstdlib>

#include "tests/mpi/ranks.h"

namespace kvs::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::vector<std::string> kLagkv{"--method", "lagkv", "--set", "lag=4", "ratio=0.25", "sinks=2"};

TEST_F(Ranks, ADeadRankIsNamedAndAnotherNumberOfRanksGoesOn) {
  write_texts(400);
  const auto command = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words = kLagkv;
    words.insert(words.end(), {"--out", folder_ / out});
    words.insert(words.end(), more.begin(), more.end());
    return with_text("eval", words);
  };
  // The same words as the ranks', since an output says how it was made.
  const std::string out = "eval.json";
  ASSERT_EQ(run("kvcalibrate", command(out, {})).status, 0);
  const std::string expected = slurp(folder_ / out);
  std::filesystem::remove(folder_ / out);
  int kills = 0;
  for (unsigned victim = 0; victim < 6; ++victim) {
    std::filesystem::remove(folder_ / out);
    const Outcome killed = run_ranks_and_kill_one(3, "kvcalibrate", command(out, {}), folder_ / out, ".journal", victim,
                                                  static_cast<int>(victim) * 20);
    if (killed.status == 0) continue;  // it had ended
    ++kills;
    const auto lines = own_lines(killed.err, "kvcalibrate");
    ASSERT_THAT(lines, SizeIs(1)) << killed.err;
    EXPECT_THAT(lines.front(), HasSubstr(" on ")) << victim;
    EXPECT_THAT(lines.front(), HasSubstr("document")) << victim;
    EXPECT_FALSE(std::filesystem::exists(folder_ / out));
    const Outcome resumed = run_ranks(2, "kvcalibrate", command(out, {"--resume"}));
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    const std::string found = slurp(folder_ / out);
    EXPECT_EQ(found.substr(0, found.find("\"command\"")), expected.substr(0, expected.find("\"command\"")));
  }
  EXPECT_GE(kills, 1);
}

TEST_F(Ranks, OneLineSaysWhatAllOfThemWouldSay) {
  const Outcome usage = run_ranks(3, "kvcalibrate", with_text("eval", {"--method", "nothing"}));
  EXPECT_EQ(usage.status, 2);
  EXPECT_THAT(own_lines(usage.err, "kvcalibrate"), SizeIs(1)) << usage.err;
  const Outcome model =
      run_ranks(2, "kvcalibrate", {"eval", "--model", folder_ / "none.gguf", "--text", folder_ / "t"});
  EXPECT_EQ(model.status, 3);
  EXPECT_THAT(own_lines(model.err, "kvcalibrate"), SizeIs(1)) << model.err;
}

TEST_F(Ranks, ACommandThatIsNotSharedIsRefused) {
  const Outcome outcome = run_ranks(2, "kvspectrum", {"info", folder_ / "model"});
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(own_lines(outcome.err, "kvspectrum"),
              ElementsAre("kvspectrum: error: kvspectrum info: found 2 ranks, expected one process: they do not share "
                          "its work"));
  EXPECT_EQ(outcome.out, "");
}

TEST_F(Ranks, AnotherMpiThanTheLaunchersIsRefused) {
  // As MPICH's mpirun tells its processes their place.
  ::setenv("PMI_SIZE", "2", 1);
  ::setenv("PMI_RANK", "0", 1);
  const Outcome outcome = run("kvcalibrate", with_text("eval", {"--method", "full", "--out", folder_ / "e.json"}));
  ::unsetenv("PMI_SIZE");
  ::unsetenv("PMI_RANK");
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.err, HasSubstr("kvcalibrate: error: MPI: found 1 ranks, expected the 2 that were launched"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "e.json"));
}

}  // namespace
}  // namespace kvs::testing
