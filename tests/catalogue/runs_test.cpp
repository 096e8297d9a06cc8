// SPDX-License-Identifier: Apache-2.0
// Runs that are stopped, continue, or meet other runs: N117, N119, N124, N125, N156.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/catalogue/catalogue.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A run of seconds into out/long.json.
std::vector<std::string> long_words(const TemporaryFolder& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{
      "eval", "--model", folder / "model",         "--tokens-file", folder / "long.jsonl", "--window", "32", "--method",
      "full", "--out",   folder / "out/long.json", "--quiet",       "--threads",           "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(Catalogue, N117_Signals) {
  write_tokens_file(folder_ / "long.jsonl", 600, 40);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    fs::remove(folder_ / "out/long.json.journal");
    const Outcome outcome =
        run_and_interrupt("kvcalibrate", long_words(folder_), folder_ / "out/long.json.journal", signal);
    EXPECT_EQ(outcome.status, 128 + signal) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("--resume"));
    EXPECT_FALSE(fs::exists(folder_ / "out/long.json"));
  }
  expect_done("kvcalibrate", long_words(folder_, {"--resume"}));
}

TEST_F(Catalogue, N156_SignalsThatTheCallerIgnores) {
  write_tokens_file(folder_ / "long.jsonl", 100, 40);
  Words words = long_words(folder_);
  std::string command = "trap '' HUP INT; exec " KVS_BINARY_DIR "/kvcalibrate";  // as nohup does
  for (const std::string& word : words) command += " '" + word + "'";
  for (const int signal : {SIGHUP, SIGINT}) {
    fs::remove(folder_ / "out/long.json");
    const Outcome outcome = run_and_interrupt("/bin/bash", {"-c", command}, folder_ / "out/long.json.journal", signal);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
}

TEST_F(Catalogue, N119_TwoProcessesWithOneOutput) {
  write("out/earlier.lock", "4194303\n");
  const int lock = ::open((folder_ / "out/earlier.lock").c_str(), O_RDWR);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  for (const char* more : {"--force", "--resume"})
    for (const Words& command :
         {Words{"eval", "--method", "full"}, Words{"elitekv", "--elite", "2"},
          Words{"faedkv", "--chunks", "4", "--sinks", "2", "--recent", "3"}, Words{"transform", "--budget", "50%"}}) {
      Words words(command.begin() + 1, command.end());
      words.insert(words.end(), {"--out", folder_ / "out/earlier", more});
      if (command.front() == "eval" && std::string(more) == "--resume") fs::remove(folder_ / "out/earlier");
      expect_refused("kvcalibrate", calibrate_words(command.front(), words), 7, {"out/earlier", "process 4194303"});
    }
  ::close(lock);
}

TEST_F(Catalogue, N124_ResumeOfAnotherRun) {
  write_tokens_file(folder_ / "long.jsonl", 600, 40);
  ASSERT_EQ(run_and_interrupt("kvcalibrate", long_words(folder_), folder_ / "out/long.json.journal").status, 130);
  const auto refuse = [&](const Words& words, Parts parts) { expect_refused("kvcalibrate", words, 7, parts); };
  Words other = long_words(folder_, {"--resume"});
  *(std::ranges::find(other, "--window") + 1) = "31";
  refuse(other, {"out/long.json.journal", "window"});
  refuse(long_words(folder_, {"--resume", "--dtype", "bf16"}), {"dtype"});
  const std::string tokens = slurp(folder_ / "long.jsonl");
  write("long.jsonl", tokens + tokens.substr(0, tokens.find('\n') + 1));
  refuse(long_words(folder_, {"--resume"}), {"text_sha256"});
  write("long.jsonl", tokens);
  write_tiny_model(folder_ / "model", TinyKind::kBiased);
  refuse(long_words(folder_, {"--resume"}), {"model_sha256"});
  refuse(long_words(folder_), {"--resume", "--force"});
}

TEST_F(Catalogue, N125_WhatTheDeadLeft) {
  constexpr const char* kNobody = "4194305";  // above Linux' largest process id
  write("out/earlier.lock", std::string(kNobody) + "\n");
  write(std::string("out/.earlier.") + kNobody + ".tmp", "begun");
  write("out/.other.1.tmp", "not its own");
  Words words = calibrate_words("eval", {"--method", "full", "--out", folder_ / "out/earlier", "--force"});
  expect_done("kvcalibrate", words);
  const auto left = contents_of(folder_ / "out");
  EXPECT_EQ(left.size(), 2U);
  EXPECT_TRUE(left.contains("earlier"));
  EXPECT_TRUE(left.contains(".other.1.tmp"));
}

}  // namespace
}  // namespace kvs::testing
