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

  /// Every file but `main` that the command writes is taken away, emptied and cut in turn: --resume says which, and
  /// makes all of them again as they were. Nothing is done where all are whole.
  void expect_mended(const std::string& program, std::vector<std::string> words, const std::string& main) {
    std::erase(words, "--quiet");
    ASSERT_EQ(run(program, words).status, 0) << words.front();
    words.push_back("--resume");
    const auto whole = contents_of(folder_ / "out");
    const Outcome again = run(program, words);
    EXPECT_THAT(again.out, HasSubstr("finished before")) << words.front() << again.err;
    std::size_t others = 0;
    for (const auto& [name, bytes] : whole) {
      if (name == main || name.ends_with(".lock")) continue;
      ++others;
      const fs::path file = folder_ / ("out/" + name);
      for (const std::function<void()>& damage :
           {std::function<void()>([&] { fs::remove(file); }), std::function<void()>([&] { fs::resize_file(file, 0); }),
            std::function<void()>([&] { fs::resize_file(file, bytes.size() / 2); })}) {
        damage();
        const Outcome mended = run(program, words);
        EXPECT_EQ(mended.status, 0) << words.front() << ' ' << name << ": " << mended.err;
        EXPECT_THAT(mended.err, HasSubstr("finished before, but " + file.string() + " is missing or damaged"));
        EXPECT_EQ(difference(whole, contents_of(folder_ / "out")), "") << words.front() << ' ' << name;
      }
    }
    EXPECT_GT(others, 0U) << words.front();
    fs::remove_all(folder_ / "out");
    fs::create_directory(folder_ / "out");
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
                with_text("retain", {"--keep", "1,0.25", "--prefix", "20", "--out", folder_ / "out/r.json"}), "r.json");
  expect_mended("kvspectrum", with_text("spectrum", {"--layers", "0", "--gain", "off", "--out-dir", folder_ / "out"}),
                "spectrum.json");
}

}  // namespace
}  // namespace kvs::testing
