// SPDX-License-Identifier: Apache-2.0
#include "draw/png.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "draw/figure.h"
#include "draw/svg.h"
#include "io/file.h"
#include "tests/io/temporary_directory.h"

namespace kvs::draw {
namespace {

namespace fs = std::filesystem;
using kvs::test::TemporaryDirectory;
using ::testing::HasSubstr;

// Sets an environment variable for the life of the object.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// A folder with its own rsvg-convert, the only one on PATH.
class StandIn {
 public:
  explicit StandIn(const std::string& script) : path_("PATH", folder_.path().string()) {
    if (script.empty()) return;
    std::ofstream(folder_.path() / "rsvg-convert") << "#!/bin/sh\n" << script;
    fs::permissions(folder_.path() / "rsvg-convert", fs::perms::owner_all);
  }

 private:
  TemporaryDirectory folder_;
  Environment path_;
};

Chart small_chart() {
  return {.heading = "A line",
          .panels = {{.x = {.axis = {0, 1}}, .y = {.axis = {0, 1}}, .series = {{.points = {{0, 0}, {1, 1}}}}}},
          .plot_width = 200,
          .plot_height = 100};
}

bool has_converter() { return png_of(svg_file(small_chart())).problem.find("not found") == std::string::npos; }

TEST(Png, HasTwiceAsManyPixelsAsTheSvgHasUnits) {
  if (!has_converter()) GTEST_SKIP() << "found no rsvg-convert";
  const std::string svg = svg_file(small_chart());
  const Png png = png_of(svg);
  EXPECT_EQ(png.problem, "");
  ASSERT_TRUE(is_whole_figure(png.bytes));
  const std::size_t at = svg.find(" width=\"") + 8;
  const auto width = std::lround(2 * std::stod(svg.substr(at)));
  // Bytes 16–19 hold the width, big-endian.
  EXPECT_EQ(static_cast<unsigned char>(png.bytes[18]) * 256 + static_cast<unsigned char>(png.bytes[19]), width);
  EXPECT_EQ(png_of(svg).bytes, png.bytes);
}

TEST(Png, WithoutTheProgramNamesItsPackage) {
  const StandIn none("");
  EXPECT_THAT(png_of("<svg/>").problem,
              testing::AllOf(HasSubstr("rsvg-convert: not found"), HasSubstr("librsvg2-bin")));
}

TEST(Png, OfAProgramThatFailsIsAProblem) {
  for (const auto& [script, part] :
       {std::pair{"echo no memory >&2; exit 3", "ended with status 3: no memory"},
        std::pair{"kill -9 $$", "killed by signal 9"}, std::pair{"exit 0", "no whole picture (0 bytes)"},
        std::pair{"printf '\\211PNG half'", "no whole picture (9 bytes)"}}) {
    const StandIn program(script);
    const Png png = png_of("<svg/>");
    EXPECT_THAT(png.problem, HasSubstr(part)) << script;
    EXPECT_EQ(png.bytes, "");
  }
}

constexpr const char* kWritesAPicture = "printf '\\211PNG....IEND\\256B\\140\\202'";

// The system then gives no status of a child; only its output shows the result.
TEST(Png, OfAChildThatCannotBeWaitedForIsWhatItWrote) {
  const StandIn program(kWritesAPicture);
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  const Png png = png_of("<svg/>");
  ::signal(SIGCHLD, before);
  EXPECT_EQ(png.problem, "");
  EXPECT_TRUE(is_whole_figure(png.bytes));
}

TEST(Png, NeedsNoTemporaryDirectory) {
  const StandIn program(kWritesAPicture);
  const Environment temporary("TMPDIR", "/none");
  EXPECT_EQ(png_of("<svg/>").problem, "");
}

TEST(Figure, IsItsSvgWhereNothingMakesAPngAndAnOlderOneGoes) {
  const TemporaryDirectory folder;
  const StandIn none("");
  std::ofstream(folder.path() / "a.png") << "old";
  OutputSet outputs;
  Figures figures(outputs);
  figures.add(folder.path() / "a", small_chart());
  const std::string note = figures.note();
  EXPECT_THAT(note, testing::AllOf(HasSubstr("note: "), HasSubstr("a.png is not written: rsvg-convert: not found")));
  EXPECT_TRUE(fs::exists(folder.path() / "a.png"));  // until the figure is in place
  outputs.commit(true);
  EXPECT_TRUE(is_whole_figure(read_text_file(folder.path() / "a.svg", 1 << 20)));
  EXPECT_FALSE(fs::exists(folder.path() / "a.png"));
}

TEST(Figure, AProgramThatHangsIsWaitedForOnce) {
  const TemporaryDirectory folder;
  const StandIn program("echo started >>" + (folder.path() / "runs").string() + "; exec /bin/sleep 600");
  OutputSet outputs;
  Figures figures(outputs, std::chrono::milliseconds(300));
  for (const char* name : {"a", "b"}) figures.add(folder.path() / name, small_chart());
  outputs.commit(false);
  EXPECT_EQ(read_text_file(folder.path() / "runs", 100), "started\n");
  EXPECT_THAT(figures.note(), HasSubstr("a.png is not written: rsvg-convert: took longer than"));
  for (const char* name : {"a", "b"}) EXPECT_TRUE(fs::exists(folder.path() / (name + std::string(".svg"))));
}

TEST(Figure, HasBothFormats) {
  const TemporaryDirectory folder;
  const StandIn program(kWritesAPicture);
  OutputSet outputs;
  Figures figures(outputs);
  figures.add(folder.path() / "a", small_chart());
  EXPECT_EQ(figures.note(), "");
  outputs.commit(false);
  for (const fs::path& file : figure_files(folder.path() / "a"))
    EXPECT_TRUE(is_whole_figure(read_text_file(file, 1 << 20))) << file;
}

TEST(Figure, IsWholeWithItsEnd) {
  EXPECT_TRUE(is_whole_figure("<svg></svg>\n"));
  EXPECT_FALSE(is_whole_figure("<svg>"));
  EXPECT_FALSE(is_whole_figure("\x89PNG half"));
  EXPECT_FALSE(is_whole_figure(""));
}

}  // namespace
}  // namespace kvs::draw
