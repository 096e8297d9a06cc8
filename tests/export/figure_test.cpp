#include "draw/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "core/error.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Sets a variable of the environment for the life of the object.
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

constexpr std::string_view kPlain = "set title heading\nplot $points using 1:2 with lines\n";

Figure plain(std::string_view heading) {
  return Figure(kPlain, 300, 200).set("heading", heading).data("points", FigureData().row({0, 1}).row({1, 2}));
}

TEST(Figure, DrawsBothFormatsWhole) {
  const FigureImages images = plain("A line").render();
  EXPECT_THAT(images.svg, testing::StartsWith("<?xml"));
  EXPECT_THAT(images.svg, HasSubstr("</svg>"));
  EXPECT_THAT(images.svg, HasSubstr("A line"));
  EXPECT_EQ(images.png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(images.png.substr(images.png.size() - 8, 4), "IEND");
  // Bytes 16–23 hold width and height, big-endian: twice 300 and 200.
  EXPECT_EQ(static_cast<unsigned char>(images.png[18]) * 256 + static_cast<unsigned char>(images.png[19]), 600);
  EXPECT_EQ(static_cast<unsigned char>(images.png[22]) * 256 + static_cast<unsigned char>(images.png[23]), 400);
}

TEST(Figure, TheSameFigureHasTheSameBytes) {
  const FigureImages first = plain("Twice").render(), second = plain("Twice").render();
  EXPECT_EQ(first.svg, second.svg);
  EXPECT_EQ(first.png, second.png);
}

TEST(Figure, LabelsAreDrawnAsTheyAreAndNeverRun) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "made").string();
  const FigureImages images =
      plain("a_b^c{d}@e&f~g\\h'i\"j `touch " + file + "` $(touch " + file + ")\nset output '" + file + "'").render();
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_THAT(images.svg, HasSubstr("a_b^c{d}@e&amp;f~g\\h'i"));
  EXPECT_THAT(images.svg, HasSubstr("`touch "));
  EXPECT_THAT(plain("a]]>b").render().svg, HasSubstr(">a]]&gt;b<"));
}

TEST(FigureLabel, QuotesAndEscapesMarkup) {
  EXPECT_EQ(figure_label("plain"), "'plain'");
  EXPECT_EQ(figure_label("it's"), "'it''s'");
  EXPECT_EQ(figure_label("k_pre\n\\"), "'k\\_pre \\\\'");
  EXPECT_EQ(figure_label("a\x1b[m\xc2\x9bz\xff\uFFFF"), "'a [m z\uFFFD\uFFFD'");
}

TEST(FigureData, WritesGapsForWhatIsNotANumber) {
  FigureData data;
  data.row({1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -0.25});
  EXPECT_EQ(data.text(), "1 NaN NaN -0.25\n");
}

// So that nothing is left behind by a program that is killed while gnuplot runs.
TEST(Figure, NeedsNoTemporaryDirectory) {
  const TemporaryDirectory directory;
  const Environment temporary("TMPDIR", (directory.path() / "missing").string());
  EXPECT_GT(plain("Clean").render().png.size(), 24U);
  EXPECT_THROW(Figure("plot nonsense(\n", 100, 100).render(), Error);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Figure, AFaultyTemplateIsAnErrorWithGnuplotsWords) {
  try {
    Figure("set nonsense\n", 100, 100).render();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("nrecognized option"));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
}

TEST(Figure, MissingGnuplotNamesThePackage) {
  const TemporaryDirectory empty;
  const Environment path("PATH", empty.path().string());
  try {
    plain("None").render();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("gnuplot: not found"), HasSubstr("gnuplot-nox")));
  }
}

}  // namespace
}  // namespace kvs::test
