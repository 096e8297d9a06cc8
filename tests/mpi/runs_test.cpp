#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "io/json.h"
#include "kernels/instruction_set.h"
#include "tests/mpi/ranks.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

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
  auto words = with_text("eval", {"--method", "full", "--documents", "1", "--json"});
  std::erase(words, "--quiet");
  const Outcome alone = run("kvcalibrate", words), shared = run_ranks(3, "kvcalibrate", words);
  ASSERT_EQ(shared.status, 0) << shared.err;
  EXPECT_EQ(parse_json(shared.out, "ranks").at("ppl"), parse_json(alone.out, "one").at("ppl"));
  EXPECT_THAT(shared.err,
              HasSubstr("note: 3 ranks share fewer documents (1): those that get none wait for the others\n"));
}

/// Two ranks, the second of which is not as the first: one line names it, and nothing is left.
class UnlikeRanks : public Ranks {
 protected:
  std::vector<std::string> words(const std::string& name, const std::string& value) const {
    auto words = with_text("capture", {"--out", folder_ / "out" / "c.h5"});
    const auto at = std::ranges::find(words, name);
    if (at == words.end())
      words.insert(words.end(), {name, value});
    else
      *(at + 1) = value;
    return words;
  }
  void expect_refused(const Rank& second, int status, const std::string& difference) const {
    const Outcome outcome =
        run_ranks("kvspectrum", {{with_text("capture", {"--out", folder_ / "out" / "c.h5"})}, second});
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(own_lines(outcome.err, "kvspectrum"),
                ElementsAre(AllOf(StartsWith("kvspectrum: error: rank 1 on "), HasSubstr(difference))))
        << outcome.err;
    EXPECT_THAT(contents_of(folder_ / "out"), IsEmpty());
  }
};

TEST_F(UnlikeRanks, InThreadsModelOrTextsAreRefusedBeforeTheFirstDocument) {
  expect_refused({words("--threads", "2")}, 7, "threads");
  write_tiny_model(folder_ / "other", TinyKind::kBiased);
  expect_refused({words("--model", folder_ / "other")}, 7, "model_sha256");
  std::ofstream(folder_ / "other.jsonl") << slurp(folder_ / "tokens.jsonl") << slurp(folder_ / "tokens.jsonl");
  expect_refused({words("--tokens-file", folder_ / "other.jsonl")}, 7, "text_sha256");
}

TEST_F(UnlikeRanks, OfAnOlderProcessorAreRefused) {
  if (instruction_set() == InstructionSet::kAvx2) GTEST_SKIP() << "this processor has nothing above AVX2";
  expect_refused({words("--threads", "1"), {"env", "DNNL_MAX_CPU_ISA=AVX2"}}, 7, "instruction_set");
}

TEST_F(UnlikeRanks, WithoutAGpuAreNamed) {
  expect_refused({words("--device", "cuda"), {"env", "CUDA_VISIBLE_DEVICES="}}, 6, "cuda");
}

TEST_F(UnlikeRanks, ThatSeeAnotherFolderAreRefused) {
  const std::string elsewhere = "mount -t tmpfs none '" + (folder_ / "out").native() + "' && exec \"$0\" \"$@\"";
  const std::vector<std::string> before{"unshare", "-m", "sh", "-c", elsewhere};
  if (run("/usr/bin/unshare", {"-m", "sh", "-c", elsewhere, "true"}).status != 0)
    GTEST_SKIP() << "cannot mount a file system of its own";
  const auto own = with_text("capture", {"--out", folder_ / "out" / "c.h5"});
  const Outcome outcome = run_ranks("kvspectrum", {{own}, {own, before}});
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(own_lines(outcome.err, "kvspectrum"),
              ElementsAre(AllOf(StartsWith("kvspectrum: error: rank 1 on "), HasSubstr("c.h5.partial: found none"),
                                HasSubstr("all ranks need one folder"))));
}

TEST_F(Ranks, OneLineSaysWhatAllOfThemWouldSay) {
  const auto expect_one_line = [](int status, const std::string& program, const std::vector<std::string>& words) {
    const Outcome outcome = run_ranks(3, program, words);
    EXPECT_EQ(outcome.status, status);
    EXPECT_THAT(own_lines(outcome.err, program), ::testing::SizeIs(1)) << outcome.err;
  };
  expect_one_line(2, "kvcalibrate", with_text("eval", {"--method", "nothing"}));
  expect_one_line(3, "kvcalibrate", {"eval", "--model", folder_ / "none.gguf", "--text", folder_ / "t"});
  expect_one_line(6, "kvspectrum", with_text("capture", {"--out", folder_ / "none" / "c.h5"}));
  expect_one_line(6, "kvspectrum", with_text("capture", {"--out", "/proc/c.h5"}));
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
