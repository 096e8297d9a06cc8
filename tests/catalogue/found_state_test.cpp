// SPDX-License-Identifier: Apache-2.0
// Damaged state of earlier runs: N134 to N142.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/catalogue/catalogue.h"
#include "tests/io/capture_fixture.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kJournal = "out/run.json.journal";
constexpr const char* kManifest = "c.h5.manifest.json";

/// A run whose figures could not be drawn, so it left its complete journal.
class StoppedRun {
 public:
  explicit StoppedRun(const TemporaryFolder& folder)
      : words_{"faedkv",
               "--model",
               folder / "model",
               "--tokens-file",
               folder / "tokens.jsonl",
               "--window",
               "32",
               "--chunks",
               "4",
               "--sinks",
               "2",
               "--recent",
               "3",
               "--out",
               folder / "out/run.json",
               "--quiet",
               "--threads",
               "1"} {
    EXPECT_EQ(run_after(stopping_at_figures(folder), "kvcalibrate", words_).status, 143);
    journal = slurp(folder / kJournal);
    for (std::size_t from = 0; from < journal.size(); from += lines.back().size())
      lines.push_back(journal.substr(from, journal.find('\n', from) + 1 - from));
  }
  /// Shell commands that put an rsvg-convert before the real one; it asks the run to stop.
  static std::string stopping_at_figures(const TemporaryFolder& folder) {
    fs::create_directory(folder / "bin");
    std::ofstream(folder / "bin/rsvg-convert") << "#!/bin/sh\nkill -TERM $PPID\n";
    fs::permissions(folder / "bin/rsvg-convert", fs::perms::owner_all);
    return "PATH='" + (folder / "bin").string() + "':$PATH";
  }
  std::vector<std::string> again(const std::vector<std::string>& how = {"--resume"}) const {
    std::vector<std::string> words = words_;
    words.insert(words.end(), how.begin(), how.end());
    return words;
  }

  std::string journal;
  std::vector<std::string> lines;

 private:
  std::vector<std::string> words_;
};

TEST_F(Catalogue, N134_AJournalWithLinesLostRepeatedOrDamaged) {
  const StoppedRun stopped(folder_);
  const auto refuse = [&](std::size_t number, const std::vector<std::string>& lines) {
    std::string bytes;
    for (const std::string& line : lines) bytes += line;
    write(kJournal, bytes);
    expect_refused("kvcalibrate", stopped.again(), 3, {kJournal, "line " + std::to_string(number) + ": damaged"});
  };
  std::vector<std::string> lines = stopped.lines;
  lines.erase(lines.begin() + 1);
  refuse(2, lines);
  lines = stopped.lines;
  lines.insert(lines.begin() + 1, lines[1]);
  refuse(3, lines);
  lines = stopped.lines;
  lines[2][5] ^= 1;
  refuse(3, lines);
  // A kill tore the last line: its document is computed again.
  write(kJournal, stopped.journal.substr(0, stopped.journal.size() - 5));
  expect_done("kvcalibrate", stopped.again());
  const std::string resumed = slurp(folder_ / "out/run.json");
  for (const auto& file : contents_of(folder_ / "out")) fs::remove(folder_ / ("out/" + file.first));
  expect_done("kvcalibrate", stopped.again({}));
  EXPECT_TRUE(slurp(folder_ / "out/run.json") == resumed);
}

TEST_F(Catalogue, N135_AJournalThatIsNone) {
  const StoppedRun stopped(folder_);
  write(kJournal, "");
  expect_refused("kvcalibrate", stopped.again(), 3, {kJournal, "is empty"});
  for (const std::string& bytes : {std::string("notes\n"), std::string(500, '\0'), stopped.journal.substr(0, 50)}) {
    write(kJournal, bytes);
    expect_refused("kvcalibrate", stopped.again(), 3, {kJournal, "line 1: damaged"});
  }
  fs::remove(folder_ / kJournal);
  fs::create_directory(folder_ / kJournal);
  expect_refused("kvcalibrate", stopped.again(), 3, {kJournal, "directory"});
  fs::remove(folder_ / kJournal);
  ASSERT_EQ(::mkfifo((folder_ / kJournal).c_str(), 0600), 0);
  expect_refused("kvcalibrate", stopped.again(), 3, {kJournal, "expected a regular file"});
}

TEST_F(Catalogue, N136_AJournalThatIsALink) {
  write("precious", "kept");
  fs::create_symlink("../precious", folder_ / "out/e.json.journal");
  const Words words = calibrate_words("eval", {"--method", "full", "--out", folder_ / "out/e.json"});
  expect_refused("kvcalibrate", words, 7, {"out/e.json.journal", "--resume", "--force"});
  Words forced = words;
  forced.push_back("--force");
  expect_done("kvcalibrate", forced);
  EXPECT_EQ(slurp(folder_ / "precious"), "kept");
}

TEST_F(Catalogue, N137_ALockThatIsAFileOfTheUsers) {
  const Words words = calibrate_words("eval", {"--method", "full", "--force", "--out", folder_ / "out/earlier"});
  write("out/earlier.lock", "my notes");
  expect_refused("kvcalibrate", words, 7, {"out/earlier.lock: exists and is no lock file"});
  fs::remove(folder_ / "out/earlier.lock");
  fs::create_directory(folder_ / "out/earlier.lock");
  expect_refused("kvcalibrate", words, 6, {"out/earlier.lock", "Is a directory"});
  fs::remove(folder_ / "out/earlier.lock");
  fs::create_symlink("../tokens.jsonl", folder_ / "out/earlier.lock");
  expect_refused("kvcalibrate", words, 2, {"out/earlier.lock: the output is the input"});
}

TEST_F(Catalogue, N138_AManifestThatDoesNotFit) {
  test::run_capture(folder_ / "c.h5", test::small_header());
  const std::string sound = slurp(folder_ / kManifest);
  const auto refuse = [&](const std::function<void(Json&)>& change, Parts parts) {
    write(kManifest, sound);
    edit_json(kManifest, change);
    expect_refused("kvspectrum", {"verify", folder_ / "c.h5"}, 3, parts);
    expect_refused("kvspectrum", {"spectrum", "--capture", folder_ / "c.h5", "--out-dir", folder_ / "out/s"}, 3, parts);
  };
  refuse([](Json& m) { m["documents"][0]["offsets"][0] = 1UL << 63; }, {kManifest, "/documents/0/offsets/0"});
  refuse([](Json& m) { m["documents"][0]["offsets"][0] = -1; }, {kManifest, "/documents/0/offsets/0: found -1"});
  refuse([](Json& m) { m["bytes"][0] = 1UL << 62; }, {kManifest, "/bytes/0"});
  refuse([](Json& m) { m["documents"].push_back(m["documents"][0]); }, {kManifest, "two datasets overlap"});
  refuse([](Json& m) { m["names"][0] = "../../x"; }, {kManifest, "../../x"});
  refuse([](Json& m) { m["file_bytes"] = 5; }, {kManifest, "/file_bytes: found 5"});
  refuse([](Json& m) { m["documents"][0]["offsets"][0] = 0; }, {"c.h5", "metadata with SHA-256"});
  refuse([](Json& m) { m.clear(); }, {kManifest, "/format"});
}

TEST_F(Catalogue, N139_AManifestOfAnotherCapture) {
  test::run_capture(folder_ / "c.h5", test::small_header());
  CaptureHeader other = test::small_header();
  other.model_sha256 = std::string(64, 'b');
  test::run_capture(folder_ / "d.h5", other);
  fs::rename(folder_ / "d.h5.manifest.json", folder_ / kManifest);
  expect_refused("kvspectrum", {"verify", folder_ / "c.h5"}, 3, {"c.h5", "metadata with SHA-256"});
}

TEST_F(Catalogue, N140_AManifestThatIsNoFile) {
  test::run_capture(folder_ / "c.h5", test::small_header());
  const std::string sound = slurp(folder_ / kManifest);
  for (const std::string& bytes : {std::string(), sound.substr(0, sound.size() / 2), std::string(100, '\0')}) {
    write(kManifest, bytes);
    expect_refused("kvspectrum", {"verify", folder_ / "c.h5"}, 3, {kManifest});
  }
  fs::remove(folder_ / kManifest);
  ASSERT_EQ(::mkfifo((folder_ / kManifest).c_str(), 0600), 0);
  expect_refused("kvspectrum", {"verify", folder_ / "c.h5"}, 3, {kManifest, "expected a regular file"});
}

TEST_F(Catalogue, N141_CheckpointsThatAreDamaged) {
  Words words{"spectrum",  "--model", folder_ / "model", "--tokens-file",   folder_ / "tokens.jsonl",
              "--window",  "32",      "--out-dir",       folder_ / "out/s", "--quiet",
              "--threads", "1"};
  EXPECT_EQ(run_after(StoppedRun::stopping_at_figures(folder_), "kvspectrum", words).status, 143);  // its sums are done
  words.push_back("--resume");
  int damaged = 0;
  for (auto [name, bytes] : contents_of(folder_ / "out/s")) {
    if (name.find(".checkpoint.") == std::string::npos) continue;
    bytes[bytes.size() / 2] ^= 1;
    write("out/s/" + name, bytes);
    ++damaged;
  }
  EXPECT_GT(damaged, 0);
  expect_done("kvspectrum", words);  // as if there were none
  const std::string resumed = slurp(folder_ / "out/s/spectrum.h5");
  words.back() = "--force";
  expect_done("kvspectrum", words);
  EXPECT_TRUE(slurp(folder_ / "out/s/spectrum.h5") == resumed);
}

TEST_F(Catalogue, N142_ConfigsWhoseFilesAreNotThere) {
  expect_done("kvcalibrate", calibrate_words("elitekv", {"--elite", "2", "--rank", "8", "--out", folder_ / "e.json"}));
  const std::string sound = slurp(folder_ / "e.json");
  const auto refuse = [&](const std::string& path, Parts parts) {
    write("e.json", sound);
    edit_json("e.json", [&](Json& config) { config["files"][0]["path"] = path; });
    expect_refused("kvcalibrate", {"validate", folder_ / "e.json"}, 3, parts);
  };
  refuse("none.safetensors", {"none.safetensors"});
  refuse("../e.safetensors", {"e.json", "/files/0/path", "a plain file name"});
  refuse("/etc/passwd", {"e.json", "/files/0/path", "a plain file name"});
  refuse("e.json", {"e.json", "/files/0/sha256"});
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  refuse("fifo", {"fifo", "regular file"});
}

}  // namespace
}  // namespace kvs::testing
