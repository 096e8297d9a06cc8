// SPDX-License-Identifier: Apache-2.0
#include "draw/colour.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "draw/marker.h"

namespace kvs::draw {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string colour_of(Medium medium, Colour colour) {
  const AttributeList attributes = paint(medium, "bar", colour);
  return attributes.front().second;
}

TEST(SeriesLook, NoTwoOfManyAreAlike) {
  for (const Medium medium : {Medium::kFile, Medium::kPage}) {
    std::set<std::pair<std::string, std::size_t>> looks;
    for (std::size_t n = 0; n < kForms * kSeriesColours; ++n)
      looks.emplace(colour_of(medium, series_look(n).colour), series_look(n).form);
    EXPECT_EQ(looks.size(), kForms * kSeriesColours);
  }
}

TEST(SeriesLook, NeighboursDifferInBothColourAndForm) {
  for (std::size_t n = 0; n + 1 < kForms * kSeriesColours; ++n) {
    EXPECT_NE(series_look(n).form, series_look(n + 1).form) << n;
    EXPECT_NE(series_look(n).colour, series_look(n + 1).colour) << n;
  }
}

TEST(Marker, EveryFormHasAnOutlineOfItsOwn) {
  std::set<std::string> outlines;
  for (std::size_t form = 0; form < kForms; ++form)
    outlines.insert(marker(Medium::kPage, form, series_colour(0), 0, 0, 4).html());
  EXPECT_EQ(outlines.size(), kForms);
}

TEST(Colour, AFileHasLiteralsAndAPageHasClasses) {
  const AttributeList file = paint(Medium::kFile, "curve thin", series_colour(1));
  EXPECT_THAT(file,
              ::testing::UnorderedElementsAre(std::pair("fill", "none"), std::pair("stroke", "#d55e00"),
                                              std::pair("stroke-width", "0.9"), std::pair("stroke-linejoin", "round")));
  EXPECT_EQ(paint(Medium::kPage, "curve thin", series_colour(1)), (AttributeList{{"class", "curve thin s1"}}));
}

TEST(Colour, ScalesEndWhereTheirColoursEnd) {
  EXPECT_EQ(colour_of(Medium::kFile, sequential(0)), "#440154");
  EXPECT_EQ(colour_of(Medium::kFile, sequential(1)), "#fde725");
  EXPECT_EQ(colour_of(Medium::kFile, sequential(7)), "#fde725");
  EXPECT_EQ(colour_of(Medium::kFile, diverging(0)), "#f7f7f7");
  EXPECT_EQ(colour_of(Medium::kFile, diverging(-1)), "#2166ac");
  EXPECT_EQ(colour_of(Medium::kPage, sequential(1)), "bar q11");
  EXPECT_EQ(colour_of(Medium::kPage, diverging(-2)), "bar d0");
  EXPECT_EQ(colour_of(Medium::kPage, order(0)), "bar q11");  // the first is strongest in both media
  EXPECT_EQ(colour_of(Medium::kFile, order(0)), "#440154");
}

TEST(Colour, LevelsLeadBackToTheirColours) {
  for (const Medium medium : {Medium::kFile, Medium::kPage})
    for (const Colour::Scale scale : {Colour::Scale::kSequential, Colour::Scale::kDiverging, Colour::Scale::kOrder})
      for (std::size_t level = 0; level < levels(scale, medium); ++level)
        EXPECT_EQ(level_of(at_level(scale, level, medium), medium), level);
}

TEST(Colour, ThePageHasEveryColourForLightAndDark) {
  const std::string css = page_style();
  for (const char* name : {"--s7:", "--q11:", "--d12:"}) {
    const std::size_t light = css.find(name);
    ASSERT_NE(light, std::string::npos) << name;
    EXPECT_NE(css.find(name, light + 1), std::string::npos) << name;
  }
  EXPECT_THAT(css, ::testing::AllOf(HasSubstr(".d12{--c:var(--d12)}"), HasSubstr("svg .curve{fill:none;stroke:var(--c"),
                                    Not(HasSubstr("$"))));
}

}  // namespace
}  // namespace kvs::draw
