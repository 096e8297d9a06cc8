// SPDX-License-Identifier: Apache-2.0
// --resume of a run that has finished, whose outputs are there no more.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FinishedRuns : public CalibratePrograms {
 protected:
  FinishedRuns() { fs::create_directory(folder_ / "out"); }

  /// Each file but `main` that the command writes is deleted, emptied and cut in turn: --resume names the file and
  /// makes all files again as they were. It does nothing where all are whole, nor where a PNG is absent.
  void expect_mended(const std::string& program, std::vector<std::string> words, const std::string& main) {
    std::erase(words, "--quiet");
    ASSERT_EQ(run(program, words).status, 0) << words.front();
    words.push_back("--resume");
    const auto whole = contents_of(folder_ / "out");
    expect_nothing_done(program, words);
    std::size_t others = 0;
    for (const auto& [name, bytes] : whole) {
      if (name == main || name.ends_with(".lock")) continue;
      ++others;
      const fs::path file = folder_ / ("out/" + name);
      for (const std::size_t size : {std::size_t{0}, bytes.size() / 2}) {
        fs::resize_file(file, size);
        expect_mended(program, words, file, whole);
      }
      fs::remove(file);
      if (!name.ends_with(".png")) {
        expect_mended(program, words, file, whole);
        continue;
      }
      expect_nothing_done(program, words);
      std::ofstream(file, std::ios::binary) << bytes;
    }
    EXPECT_GT(others, 0U) << words.front();
    fs::remove_all(folder_ / "out");
    fs::create_directory(folder_ / "out");
  }

 private:
  static void expect_nothing_done(const std::string& program, const std::vector<std::string>& words) {
    const Outcome again = run(program, words);
    EXPECT_THAT(again.out, HasSubstr("finished before")) << words.front() << again.err;
  }
  void expect_mended(const std::string& program, const std::vector<std::string>& words, const fs::path& file,
                     const std::map<std::string, std::string>& whole) const {
    const Outcome mended = run(program, words);
    EXPECT_EQ(mended.status, 0) << words.front() << ' ' << file << ": " << mended.err;
    EXPECT_THAT(mended.err, HasSubstr("finished before, but " + file.string() + " is missing or damaged"));
    EXPECT_EQ(difference(whole, contents_of(folder_ / "out")), "") << words.front() << ' ' << file;
  }
};

TEST_F(FinishedRuns, OfKvcalibrateAreMended) {
  expect_mended("kvcalibrate",
                with_text("eval", {"--method", "full", "--out", folder_ / "out/e.json", "--save-config",
                                   folder_ / "out/full.json"}),
                "e.json");
  expect_mended("kvcalibrate", elitekv("out/k.json", {"--rank", "8"}), "k.json");
  expect_mended("kvcalibrate", faedkv("out/f.json", {"--sweep", "2,8"}), "f.json");
  expect_mended(
      "kvcalibrate",
      with_text("transform", {"--budget", "50%", "--sinks", "1", "--recent", "2", "--out", folder_ / "out/t.json"}),
      "t.json");
}

TEST_F(FinishedRuns, OfKvspectrumAreMended) {
  expect_mended("kvspectrum",
                with_text("retain", {"--kept-shares", "1,0.25", "--prefix", "20", "--out", folder_ / "out/r.json"}),
                "r.json");
  expect_mended("kvspectrum", with_text("spectrum", {"--layers", "0", "--gain", "off", "--out-dir", folder_ / "out"}),
                "spectrum.json");
}

}  // namespace
}  // namespace kvs::testing
