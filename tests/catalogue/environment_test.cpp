// SPDX-License-Identifier: Apache-2.0
// Disks, folders, limits and the clock: N115, N116, N120, N122, N123.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/catalogue/catalogue.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// `words` with another value of `option`.
std::vector<std::string> with_value(std::vector<std::string> words, const char* option, const std::string& value) {
  *(std::ranges::find(words, option) + 1) = value;
  return words;
}

TEST_F(Catalogue, N115_DiskFull) {
  const std::string program = KVS_BINARY_DIR "/kvspectrum";
  // A disk of 64 KiB: the capture of two documents needs 80 KiB.
  std::string command = "mount -t tmpfs -o size=64k none '" + (folder_ / "out").string() + "' || exit 99; " + program;
  for (const std::string& word : with_value(capture_words(), "--out", folder_ / "out/c.h5"))
    command += " '" + word + "'";
  command += "; status=$?; ls -A '" + (folder_ / "out").string() + "'; exit $status";
  const Outcome outcome = run("/usr/bin/unshare", {"-Urm", "/bin/bash", "-c", command});
  if (outcome.err.find("unshare") != std::string::npos || outcome.status == 99)
    GTEST_SKIP() << "this system makes no small disk: " << outcome.err;
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("c.h5"));
  EXPECT_THAT(outcome.err, HasSubstr("No space left on device"));
  EXPECT_EQ(outcome.out, "") << "left on the disk";
}

TEST_F(Catalogue, N115_FullStandardOutput) {
  Words words = capture_words();
  words.push_back("--json");
  const Outcome outcome = run_after("exec >/dev/full", "kvspectrum", words);
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.err, HasSubstr("standard output"));
  expect_done("kvspectrum", {"verify", folder_ / "out/earlier"});
}

TEST_F(Catalogue, N116_FoldersThatCannotHoldTheOutput) {
  const auto refuse = [&](const std::string& out, std::string_view part) {
    expect_refused("kvspectrum", with_value(capture_words(), "--out", out), 6, {part});
    expect_refused("kvcalibrate", calibrate_words("eval", {"--method", "full", "--out", out}), 6, {part});
    expect_refused("kvcalibrate", calibrate_words("elitekv", {"--elite", "2", "--out", out}), 6, {part});
  };
  refuse("/proc/a", "/proc");
  fs::remove(folder_ / "model/model.safetensors");  // faults of the output are reported first
  refuse(folder_ / "none/a", "none");
  refuse(folder_ / "out/earlier/a", "out/earlier");
}

TEST_F(Catalogue, N120_LimitOfFileSize) {
  expect_refused_after("ulimit -f 16", "kvspectrum", capture_words(), 6, {"out/earlier", "File too large"});
  // Not even a lock can be written, nor the message.
  const auto before = contents_of(folder_ / "");
  const Words words = calibrate_words("eval", {"--method", "full", "--out", folder_ / "out/earlier", "--force"});
  EXPECT_EQ(run_after("exec 2>/dev/null; ulimit -f 0", "kvcalibrate", words).status, 6);
  EXPECT_EQ(contents_of(folder_ / ""), before);
}

TEST_F(Catalogue, N120_LimitOfMemory) {
  const Outcome outcome = run_after("ulimit -v 60000", "kvspectrum", capture_words());
  EXPECT_NE(outcome.status, 70);
  EXPECT_LT(outcome.status, 200) << outcome.err;  // 127: the loader itself found no memory
  EXPECT_EQ(slurp(folder_ / "out/earlier"), "made before");
}

TEST_F(Catalogue, N120_LimitOfDescriptors) {
  const auto starve = [&](const Words& words, const std::string& earlier) {
    bool done = false;
    for (int most = 4; most < 40 && !done; ++most) {
      const Outcome outcome = run_after("ulimit -n " + std::to_string(most), "kvspectrum", words);
      done = outcome.status == 0;
      if (done || outcome.status == 127) continue;  // 127: the loader could not open a library
      EXPECT_EQ(outcome.status, 6) << words.front() << ' ' << most << ": " << outcome.err;
      EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << words.front() << ' ' << most << ": " << outcome.err;
      EXPECT_EQ(slurp(folder_ / "out/earlier"), earlier) << words.front() << ' ' << most;
    }
    EXPECT_TRUE(done) << words.front();
  };
  starve(capture_words(), "made before");
  const std::string made = slurp(folder_ / "out/earlier");
  starve({"verify", folder_ / "out/earlier"}, made);
  fs::create_directory(folder_ / "results");
  expect_done("kvcalibrate", calibrate_words("eval", {"--method", "full", "--out", folder_ / "results/full.json"}));
  starve({"report", folder_ / "results", "--out", folder_ / "report.html"}, made);
  starve({"spectrum", "--capture", folder_ / "out/earlier", "--gain", "off", "--out-dir", folder_ / "s", "--quiet",
          "--force"},
         made);
}

TEST_F(Catalogue, N122_StandardOutputClosed) {
  for (const char* setup : {"exec >&-", "exec > >(exec true); wait $!"}) {
    Words words = capture_words();
    words.push_back("--json");
    const Outcome outcome = run_after(setup, "kvspectrum", words);
    EXPECT_EQ(outcome.status, 6) << setup;
    EXPECT_THAT(outcome.err, HasSubstr("standard output"));
    expect_done("kvspectrum", {"verify", folder_ / "out/earlier"});
  }
}

TEST_F(Catalogue, N123_ClockAndTimeZone) {
  expect_done("kvspectrum", capture_words());
  const std::string first = slurp(folder_ / "out/earlier");
  for (const char* name : {"model/model.safetensors", "model/config.json", "tokens.jsonl"})
    fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() + std::chrono::hours(24 * 365));
  const Outcome outcome = run_after("export TZ=Pacific/Kiritimati LC_ALL=tr_TR.UTF-8", "kvspectrum", capture_words());
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(slurp(folder_ / "out/earlier") == first);
}

}  // namespace
}  // namespace kvs::testing
