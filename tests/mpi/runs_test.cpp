#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "io/json.h"
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

TEST_F(Ranks, AKilledCaptureGoesOnWithAnotherNumberOfRanks) {
  write_texts(200);
  const auto capture = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--out", folder_ / "out.h5"};
    words.insert(words.end(), more.begin(), more.end());
    return with_text("capture", words);
  };
  const auto outputs = [&] {
    const auto bytes = std::pair(slurp(folder_ / "out.h5"), slurp(folder_ / "out.h5.manifest.json"));
    for (const char* name : {"out.h5", "out.h5.manifest.json"}) std::filesystem::remove(folder_ / name);
    return bytes;
  };
  ASSERT_EQ(run("kvspectrum", capture({})).status, 0);
  const auto expected = outputs();
  for (unsigned victim = 0; victim < 4; ++victim) {
    const Outcome killed = run_ranks_and_kill_one(3, "kvspectrum", capture({}), folder_ / "out.h5", ".journal", victim,
                                                  static_cast<int>(victim) * 30);
    const Outcome resumed = killed.status == 0 ? killed : run_ranks(2, "kvspectrum", capture({"--resume"}));
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_TRUE(outputs() == expected) << victim;
  }
}

TEST_F(Ranks, MemoryDoesNotGrowWithDocuments) {
  const auto most_after = [&](const std::string& documents) {
    const Outcome outcome = run_ranks(
        2, "kvspectrum", with_text("spectrum", {"--documents", documents, "--force", "--out-dir", folder_ / "s"}));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);  // of the largest process so far
    return usage.ru_maxrss;              // KiB
  };
  write_texts(600);
  const long few = most_after("10"), many = most_after("1000");
  EXPECT_LE(many, few + 4096) << few;
}

TEST_F(Ranks, MoreRanksThanDocumentsHaveNothingToDo) {
  const auto words = with_text("eval", {"--method", "full", "--documents", "1", "--json"});
  const Outcome alone = run("kvcalibrate", words), shared = run_ranks(3, "kvcalibrate", words);
  ASSERT_EQ(shared.status, 0) << shared.err;
  EXPECT_EQ(parse_json(shared.out, "ranks").at("ppl"), parse_json(alone.out, "one").at("ppl"));
}

TEST_F(Ranks, OneThatDiffersIsNamed) {
  // mpirun takes several programs, here with options of their own.
  auto words = with_text("eval", {"--method", "full"});
  std::vector<std::string> all{"--allow-run-as-root", "--oversubscribe", "-n", "1"};
  for (const char* const threads : {"1", "2"}) {
    if (threads[0] == '2') all.insert(all.end(), {":", "-n", "1"});
    all.emplace_back(std::string(KVS_BINARY_DIR) + "/kvcalibrate");
    *(std::ranges::find(words, std::string("--threads")) + 1) = threads;
    all.insert(all.end(), words.begin(), words.end());
  }
  const Outcome outcome = run(KVS_MPIRUN, all);
  EXPECT_EQ(outcome.status, 7);
  const auto lines = own_lines(outcome.err, "kvcalibrate");
  ASSERT_THAT(lines, SizeIs(1)) << outcome.err;
  EXPECT_THAT(lines.front(), HasSubstr("rank 1 on "));
  EXPECT_THAT(lines.front(), HasSubstr("threads"));
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
