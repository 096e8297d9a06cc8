// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "io/file.h"
#include "io/json.h"
#include "kernels/instruction_set.h"
#include "tests/cli/program.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CaptureProgram : public ::testing::Test {
 protected:
  CaptureProgram() {
    write_tiny_model(folder_ / "model");
    write_tokens_file(folder_ / "tokens.jsonl", 6, 70);
  }
  std::vector<std::string> capture(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"capture",
                                   "--model",
                                   folder_ / "model",
                                   "--tokens-file",
                                   folder_ / "tokens.jsonl",
                                   "--window",
                                   "32",
                                   "--states",
                                   "q_pre,k_pre,k_post,v",
                                   "--out",
                                   folder_ / out,
                                   "--quiet",
                                   "--threads",
                                   "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  TemporaryFolder folder_;
};

TEST_F(CaptureProgram, StoresEveryWholeWindowAndVerifiesIt) {
  const Outcome made = run("kvspectrum", capture("a.h5", {"--json"}));
  ASSERT_EQ(made.status, 0) << made.err;
  const Json result = parse_json(made.out, "stdout");
  EXPECT_EQ(result.at("documents"), 12);       // each text of 70 tokens holds two windows of 32
  EXPECT_EQ(result.at("tokens_dropped"), 36);  // and leaves 6
  const Outcome verified = run("kvspectrum", {"verify", folder_ / "a.h5"});
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.h5.journal"));
}

TEST_F(CaptureProgram, FindsAFlippedBitAndSaysWhere) {
  ASSERT_EQ(run("kvspectrum", capture("a.h5")).status, 0);
  const auto size = std::filesystem::file_size(folder_ / "a.h5");
  std::fstream file(folder_ / "a.h5", std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(size - 100));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(size - 100));
  file.put(static_cast<char>(byte ^ 4));
  file.close();
  const Outcome verified = run("kvspectrum", {"verify", folder_ / "a.h5"});
  EXPECT_EQ(verified.status, 3);
  EXPECT_THAT(verified.err, HasSubstr("a.h5"));
}

TEST_F(CaptureProgram, CallsNoCaptureSoundThatNothingCanCheck) {
  ASSERT_EQ(run("kvspectrum", capture("a.h5")).status, 0);
  std::filesystem::remove(folder_ / "a.h5.manifest.json");
  const Outcome verified = run("kvspectrum", {"verify", folder_ / "a.h5"});
  EXPECT_EQ(verified.status, 3);
  EXPECT_THAT(verified.err, HasSubstr("a.h5.manifest.json: is missing"));
  const Outcome read = run("kvspectrum", {"spectrum", "--capture", folder_ / "a.h5", "--out-dir", folder_ / "out"});
  EXPECT_EQ(read.status, 0) << read.err;
  EXPECT_THAT(read.err, HasSubstr("its data are not checked"));
}

TEST_F(CaptureProgram, DestroysNothingThatItReadsNotEvenWithForce) {
  const std::string model = folder_ / "model", tokens = folder_ / "tokens.jsonl";
  std::filesystem::create_hard_link(tokens, folder_ / "b.h5.lock");
  for (const std::string out :
       {"model/model.safetensors", "model/tokenizer.json", "model/new.h5", "tokens.jsonl", "b.h5"}) {
    const Outcome refused = run("kvspectrum", capture(out, {"--force"}));
    EXPECT_EQ(refused.status, 2) << out << ": " << refused.err;
  }
  ASSERT_EQ(run("kvspectrum", capture("a.h5")).status, 0);
  for (const std::string folder : {"model", "model/new"}) {
    const Outcome refused = run("kvspectrum", {"spectrum", "--model", model, "--tokens-file", tokens, "--window", "32",
                                               "--out-dir", folder_ / folder, "--force"});
    EXPECT_EQ(refused.status, 2) << folder << ": " << refused.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model/new"));
  EXPECT_EQ(run("kvspectrum", capture("c.h5")).status, 0);  // the model and the text are whole
}

TEST_F(CaptureProgram, LeavesAnExistingOutputAloneWithoutForce) {
  std::ofstream(folder_ / "a.h5") << "precious";
  const Outcome refused = run("kvspectrum", capture("a.h5"));
  EXPECT_EQ(refused.status, 7);
  EXPECT_THAT(refused.err, StartsWith("kvspectrum: error: "));
  EXPECT_EQ(slurp(folder_ / "a.h5"), "precious");
  EXPECT_EQ(run("kvspectrum", capture("a.h5", {"--force"})).status, 0);
}

TEST_F(CaptureProgram, LocksItsOutputBeforeItReadsAModel) {
  const OutputLock lock(folder_ / "a.h5");
  std::filesystem::remove_all(folder_ / "model");
  const Outcome refused = run("kvspectrum", capture("a.h5"));
  EXPECT_EQ(refused.status, 7);
  EXPECT_THAT(refused.err, HasSubstr("is being written by process"));
}

TEST_F(CaptureProgram, LayersThatExceedTheBudgetAreStreamedToTheSameBytes) {
  ASSERT_EQ(run("kvspectrum", capture("whole.h5")).status, 0);
  // Four layers of 62 kB and a head of 12 kB.
  std::vector<std::string> words = capture("streamed.h5", {"--weights-budget", "200KiB"});
  std::erase(words, "--quiet");
  const Outcome streamed = run("kvspectrum", words);
  ASSERT_EQ(streamed.status, 0) << streamed.err;
  EXPECT_THAT(streamed.err, HasSubstr("layers are read from disk in every pass"));
  EXPECT_EQ(slurp(folder_ / "streamed.h5"), slurp(folder_ / "whole.h5"));
  EXPECT_EQ(run("kvspectrum", capture("a.h5", {"--weights-budget", "200KB"})).status, 2);
  EXPECT_EQ(run("kvspectrum", capture("a.h5", {"--weights-budget", "0"})).status, 2);
  const Outcome refused = run("kvspectrum", capture("a.h5", {"--weights-budget", "20KiB"}));
  EXPECT_EQ(refused.status, 6);
  EXPECT_THAT(refused.err, HasSubstr("for one layer"));
}

TEST_F(CaptureProgram, ResumedAfterSigkillIsIdenticalToTheByte) {
  ASSERT_EQ(run("kvspectrum", capture("whole.h5")).status, 0);
  const std::string whole = slurp(folder_ / "whole.h5"), manifest = slurp(folder_ / "whole.h5.manifest.json");
  std::mt19937 random(3);
  int killed = 0;
  for (int round = 0; round < 12; ++round) {
    const std::string out = "r" + std::to_string(round) + ".h5";
    // --resume is right whether or not the kill came before anything was there to resume.
    killed += run_with_kills("kvspectrum", capture(out), capture(out, {"--resume"}), random);
    EXPECT_EQ(slurp(folder_ / out), whole) << "round " << round;
    EXPECT_EQ(slurp(folder_ / (out + ".manifest.json")).size(), manifest.size());
  }
  EXPECT_GT(killed, 2);
}

TEST_F(CaptureProgram, StopsOnSigintWithAResumableState) {
  ASSERT_EQ(run("kvspectrum", capture("whole.h5", {"--window", "64"})).status, 2) << "an option given twice";
  write_tokens_file(folder_ / "tokens.jsonl", 400, 70);
  const Outcome stopped = run_and_interrupt("kvspectrum", capture("a.h5"), folder_ / "a.h5.journal");
  ASSERT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("--resume"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.h5"));
  EXPECT_EQ(run("kvspectrum", capture("a.h5")).status, 7) << "an unfinished run is not overwritten silently";
  EXPECT_EQ(run("kvspectrum", capture("a.h5", {"--resume"})).status, 0);
}

TEST_F(CaptureProgram, AFinishedOneThatIsGoneOrEmptyIsMadeAgain) {
  ASSERT_EQ(run("kvspectrum", capture("a.h5")).status, 0);
  const auto whole = contents_of(folder_ / "");
  const std::filesystem::path file = folder_ / "a.h5";
  for (const bool gone : {true, false}) {
    if (gone) std::filesystem::remove(file);
    if (!gone) std::filesystem::resize_file(file, 0);
    const Outcome again = run("kvspectrum", capture("a.h5", {"--resume"}));
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_EQ(difference(whole, contents_of(folder_ / "")), "");
  }
  std::ofstream(file) << "another file, which its owner may want";
  EXPECT_EQ(run("kvspectrum", capture("a.h5", {"--resume"})).status, 3);
  EXPECT_EQ(slurp(file), "another file, which its owner may want");
}

TEST_F(CaptureProgram, RefusesToResumeAnotherRun) {
  write_tokens_file(folder_ / "tokens.jsonl", 400, 70);
  ASSERT_EQ(run_and_interrupt("kvspectrum", capture("a.h5"), folder_ / "a.h5.journal").status, 130);
  const Outcome other = run("kvspectrum", capture("a.h5", {"--resume", "--state-dtype", "f16"}));
  EXPECT_EQ(other.status, 7);
  EXPECT_THAT(other.err, HasSubstr("store"));
  auto elsewhere = capture("a.h5", {"--resume"});
  elsewhere.insert(elsewhere.begin(), {"DNNL_MAX_CPU_ISA=AVX2", KVS_BINARY_DIR "/kvspectrum"});
  const Outcome older = run("/usr/bin/env", elsewhere);
  if (instruction_set() == InstructionSet::kAvx2) {
    EXPECT_EQ(older.status, 0) << older.err;
  } else {
    EXPECT_EQ(older.status, 7);
    EXPECT_THAT(older.err, HasSubstr("instruction_set"));
  }
}

TEST_F(CaptureProgram, FullDiskIsFoundBeforeTheForwardPass) {
  std::string command = "ulimit -f 64; exec " + std::string(KVS_BINARY_DIR) + "/kvspectrum";
  for (const auto& word : capture("a.h5")) command += " '" + word + "'";
  const Outcome full = run("/bin/bash", {"-c", command});
  EXPECT_EQ(full.status, 6) << full.err;
  EXPECT_THAT(full.err, HasSubstr("a.h5"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.h5"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.h5.partial"));
}

TEST_F(CaptureProgram, RefusesBadOptionsInOneLine) {
  const auto expect = [&](const std::vector<std::string>& words, int status, const std::string& part) {
    const Outcome outcome = run("kvspectrum", words);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  const std::string model = folder_ / "model", tokens = folder_ / "tokens.jsonl", out = folder_ / "x.h5";
  expect({"capture", "--model", model, "--tokens-file", tokens, "--out", out, "--window", "1e3"}, 2, "--window");
  expect({"capture", "--model", model, "--tokens-file", tokens, "--out", out, "--window", "0"}, 2, "--window");
  expect({"capture", "--model", model, "--tokens-file", tokens, "--out", out, "--layers", "0-99"}, 2, "--layers");
  expect({"capture", "--model", model, "--tokens-file", tokens, "--out", out, "--states", "k_mid"}, 2, "k_mid");
  expect({"capture", "--model", model, "--tokens-file", tokens, "--out", out, "--frobnicate"}, 2, "frobnicate");
  expect({"capture", "--model", model, "--tokens-file", tokens, "--out", tokens, "--force"}, 2, "tokens.jsonl");
  expect({"capture", "--model", model, "--tokens-file", tokens, "--out", out, "--quiet"}, 5, "1024");
  expect({"capture", "--model", folder_ / "none", "--tokens-file", tokens, "--out", out}, 3, "none");
  expect({"capture", "--model", model, "--tokens-file", tokens, "--out", folder_ / "no/such/x.h5"}, 6, "no/such");
  expect({"frob"}, 2, "frob");
  // --help checks the rest of its line first, so that a command line can be tried without being run.
  expect({"capture", "--frobnicate", "--help"}, 2, "frobnicate");
  expect({"capture", "--state-dtype", "f64", "--help"}, 2, "one of f32, f16, bf16");
  expect({"capture", "--documents", "all", "--help"}, 2, "a whole number");
}

TEST_F(CaptureProgram, HelpShowsAnExample) {
  for (const char* command : {"capture", "spectrum", "verify"}) {
    const Outcome help = run("kvspectrum", {command, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.out, HasSubstr(std::string("  kvspectrum ") + command));
  }
}

}  // namespace
}  // namespace kvs::testing
