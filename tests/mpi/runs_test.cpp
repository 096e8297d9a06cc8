// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "io/json.h"
#include "kernels/instruction_set.h"
#include "tests/cli/letters_tokenizer.h"
#include "tests/mpi/ranks.h"

namespace kvs::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(Ranks, MemoryDoesNotGrowWithDocuments) {
  const auto max_after = [&](const std::string& program, std::vector<std::string> words, const std::string& documents) {
    words.insert(words.end(), {"--force", "--documents", documents});
    const Outcome outcome = run_ranks(2, program, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);  // of the largest process so far
    return usage.ru_maxrss;              // KiB
  };
  write_texts(600);
  const auto expect_the_same = [&](const std::string& program, const std::vector<std::string>& words) {
    const long few = max_after(program, words, "10"), many = max_after(program, words, "1000");
    EXPECT_LE(many, few + 4096) << program << ' ' << words.front() << ", with few: " << few;
  };
  expect_the_same("kvcalibrate", with_text("eval", {"--method", "full", "--out", folder_ / "e.json"}));
  expect_the_same("kvspectrum", with_text("spectrum", {"--out-dir", folder_ / "s"}));  // takes more
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

/// Two ranks, the second of which differs from the first: one line names it, and no file is left.
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
    expect_refused({with_text("capture", {"--out", folder_ / "out" / "c.h5"})}, second, status, difference);
  }
  void expect_refused(const Rank& first, const Rank& second, int status, const std::string& difference) const {
    const Outcome outcome = run_ranks("kvspectrum", {first, second});
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(own_lines(outcome.err, "kvspectrum"),
                ElementsAre(AllOf(StartsWith("kvspectrum: error: rank 1 on "), HasSubstr(difference))))
        << outcome.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / "out"));
  }
};

TEST_F(UnlikeRanks, InThreadsModelOrTextsAreRefusedBeforeTheFirstDocument) {
  expect_refused({words("--threads", "2")}, 7, "threads");
  write_tiny_model(folder_ / "other", TinyKind::kBiased);
  expect_refused({words("--model", folder_ / "other")}, 7, "model_sha256");
  std::ofstream(folder_ / "other.jsonl") << slurp(folder_ / "tokens.jsonl") << slurp(folder_ / "tokens.jsonl");
  expect_refused({words("--tokens-file", folder_ / "other.jsonl")}, 7, "text_sha256");
}

TEST_F(UnlikeRanks, InWhatAConfigSaysAreRefused) {
  write_tiny_model(folder_ / "other");
  Json config = parse_json(slurp(folder_ / "other" / "config.json"), "config.json");
  config["rms_norm_eps"] = 0.5;  // the tensors are the same
  std::ofstream(folder_ / "other" / "config.json") << dump_json(config);
  expect_refused({words("--model", folder_ / "other")}, 7, "model_config.norm_epsilon");
}

TEST_F(UnlikeRanks, InTheTokenizerAreRefused) {
  std::ofstream(folder_ / "text.txt") << std::string(200, 'a') << std::string(200, 'b');
  write_tiny_model(folder_ / "other");
  Json tokenizer = letters_tokenizer();
  std::ofstream(folder_ / "model" / "tokenizer.json") << dump_json(tokenizer);
  Json& vocabulary = tokenizer["model"]["vocab"];
  std::swap(vocabulary["a"], vocabulary["b"]);
  std::ofstream(folder_ / "other" / "tokenizer.json") << dump_json(tokenizer);
  const auto on_text = [&](const std::string& model) {
    return std::vector<std::string>{
        "spectrum",  "--model", folder_ / model, "--text",    folder_ / "text.txt", "--window", "32",
        "--threads", "1",       "--quiet",       "--out-dir", folder_ / "out" / "s"};
  };
  expect_refused({on_text("model")}, {on_text("other")}, 7, "tokens: ");
}

TEST_F(UnlikeRanks, InTheCaptureAreRefused) {
  const auto capture = [&](const std::string& name) {
    ASSERT_EQ(run("kvspectrum", with_text("capture", {"--documents", "3", "--out", folder_ / name})).status, 0);
  };
  capture("one.h5");
  write_tokens_file(folder_ / "tokens.jsonl", 3, 32);
  capture("other.h5");
  const auto spectrum_of = [&](const std::string& name) {
    return std::vector<std::string>{"spectrum", "--capture", folder_ / name, "--threads",
                                    "1",        "--quiet",   "--out-dir",    folder_ / "out" / "s"};
  };
  expect_refused({spectrum_of("one.h5")}, {spectrum_of("other.h5")}, 7, "capture_sha256");
}

TEST_F(UnlikeRanks, OfAnOlderProcessorAreRefused) {
  if (instruction_set() == InstructionSet::kAvx2) GTEST_SKIP() << "this processor has nothing above AVX2";
  expect_refused({words("--threads", "1"), {"env", "DNNL_MAX_CPU_ISA=AVX2"}}, 7, "instruction_set");
}

TEST_F(UnlikeRanks, WithoutAGpuAreNamed) {
  expect_refused({words("--device", "cuda"), {"env", "CUDA_VISIBLE_DEVICES="}}, 6, "cuda");
}

TEST_F(UnlikeRanks, ThatSeeAnotherFolderAreRefused) {
  // With the files that an earlier run of the same command has left there.
  const auto own = with_text("capture", {"--out", folder_ / "out" / "c.h5"});
  ASSERT_EQ(run_and_interrupt("kvspectrum", own, folder_ / "out" / "c.h5.journal", SIGKILL).status, 1000 + SIGKILL);
  std::filesystem::rename(folder_ / "out", folder_ / "left");
  std::filesystem::create_directory(folder_ / "out");
  const std::string out = (folder_ / "out").native(), left = (folder_ / "left").native(),
                    elsewhere = "mount --bind '" + left + "' '" + out + "' && exec \"$0\" \"$@\"";
  const std::vector<std::string> before{"unshare", "-m", "sh", "-c", elsewhere};
  if (run("/usr/bin/unshare", {"-m", "sh", "-c", elsewhere, "true"}).status != 0)
    GTEST_SKIP() << "cannot mount a file system of its own";
  expect_refused({own, before}, 6, "c.h5.partial: found the file of another run, expected the file of rank 0");
  std::filesystem::remove_all(left);
  std::filesystem::create_directory(left);
  expect_refused({own, before}, 6, "c.h5.partial: found none, expected the file of rank 0: all ranks need one folder");
}

TEST_F(Ranks, OneLineSaysWhatAllOfThemWouldSay) {
  const auto expect_one_line = [](int status, const std::string& program, const std::vector<std::string>& words) {
    const Outcome outcome = run_ranks(3, program, words);
    EXPECT_EQ(outcome.status, status);
    EXPECT_THAT(own_lines(outcome.err, program), ::testing::SizeIs(1)) << outcome.err;
  };
  expect_one_line(2, "kvcalibrate", with_text("eval", {"--method", "nothing"}));
  expect_one_line(3, "kvcalibrate",
                  {"eval", "--method", "full", "--model", folder_ / "none.gguf", "--text", folder_ / "t"});
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

TEST_F(Ranks, AnotherMpiThanTheLaunchersIsRefusedByRank0) {
  for (const std::string rank : {"0", "1"}) {  // as MPICH's mpirun tells its processes their rank
    const Outcome outcome =
        run("/usr/bin/env", {"PMI_SIZE=2", "PMI_RANK=" + rank, std::string(KVS_BINARY_DIR) + "/kvcalibrate", "eval",
                             "--method", "full", "--out", folder_ / "e.json"});
    EXPECT_EQ(outcome.status, 6);
    const std::string line = "kvcalibrate: error: MPI: found 1 ranks, expected the 2 that were launched";
    EXPECT_THAT(outcome.err, StartsWith(rank == "0" ? line : ""));
    EXPECT_EQ(outcome.err.empty(), rank != "0");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "e.json"));
}

TEST_F(Ranks, WhatAnMpirunThatIsGoneLeftInTheEnvironmentIsStatus6) {
  std::vector<std::string> words;
  std::istringstream left(run(KVS_MPIRUN, {"--allow-run-as-root", "-n", "1", "env"}).out);
  for (std::string line; std::getline(left, line);)
    if (line.starts_with("OMPI_") || line.starts_with("PMIX_")) words.push_back(line);
  words.insert(words.end(), {"OMPI_COMM_WORLD_SIZE=2", std::string(KVS_BINARY_DIR) + "/kvcalibrate", "eval"});
  const Outcome outcome = run("/usr/bin/env", words);
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(own_lines(outcome.err, "kvcalibrate"),
              ElementsAre(AllOf(StartsWith("kvcalibrate: error: rank 0 on "), HasSubstr("was ended by MPI"))))
      << outcome.err;
}

}  // namespace
}  // namespace kvs::testing
