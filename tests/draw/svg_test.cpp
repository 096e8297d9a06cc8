// SPDX-License-Identifier: Apache-2.0
#include "draw/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "draw/layout.h"
#include "draw/text_width.h"
#include "tests/draw/xml.h"

namespace kvs::draw {
namespace {

using test::attribute;
using test::elements;
using test::number;
using test::parsed;
using test::texts;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Series series(const std::string& name, std::vector<Point> points, std::size_t look = 0) {
  return {.name = name, .look = series_look(look), .points = std::move(points)};
}

/// Two adjacent panels that share the vertical axis.
Chart two_panels() {
  Chart chart{.heading = "Two panels"};
  for (const char* key : {"left", "right"}) {
    Panel panel{.key = key, .title = std::string("The ") + key, .description = "A panel."};
    panel.x = {.axis = {1, 1000, Axis::Scale::kLogarithmic}, .name = "bin"};
    panel.y = {.axis = {0, 10}, .name = "value"};
    panel.series.push_back(series("a", {{1, 1}, {10, 5}, {1000, 9}}));
    chart.panels.push_back(panel);
  }
  arrange(chart, 2);
  return chart;
}

Chart one_panel(Panel panel) { return {.heading = "One", .panels = {std::move(panel)}}; }

/// A map of two rows and three columns with one empty cell.
Panel map() {
  Panel panel{.key = "map", .title = "A map", .description = "Values."};
  panel.x.names = {"0", "1", "2"};
  panel.y.names = {"7", "8"};
  panel.cells = Cells{{{0, 0.5, 1}, {0, 0, kNoValue}},
                      {{"a", "b", "c"}, {"d", "e", "none"}},
                      {"7", "8"},
                      {"0", "1", "2"},
                      "layer",
                      "chunk"};
  panel.bar = share_bar("share");
  return panel;
}

/// Lines of series.
std::vector<test::Xml> curves(const std::string& svg) {
  auto paths = elements(parsed(svg), "path");
  std::erase_if(paths, [](const test::Xml& path) { return attribute(path, "stroke-linejoin") != "round"; });
  return paths;
}

std::size_t count(const std::string& all, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = all.find(part); at != std::string::npos; at = all.find(part, at + 1)) ++found;
  return found;
}

TEST(SvgFile, IsCompleteInItself) {
  const std::string svg = svg_file(two_panels());
  EXPECT_TRUE(svg.starts_with("<?xml"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NO_THROW(parsed(svg));
  for (const char* outside : {"class=", "var(", "<style", "href", "url("}) EXPECT_THAT(svg, Not(HasSubstr(outside)));
  EXPECT_THAT(svg, AllOf(HasSubstr("font-family=\"DejaVu Sans"), HasSubstr("stroke=\"#0072b2\"")));
}

TEST(SvgFile, TheSameChartHasTheSameBytes) { EXPECT_EQ(svg_file(two_panels()), svg_file(two_panels())); }

TEST(SvgFile, NeighboursShareWhatTheyAgreeIn) {
  const auto words = texts(svg_file(two_panels()));
  EXPECT_EQ(std::ranges::count(words, "value"), 1);
  EXPECT_EQ(std::ranges::count(words, "bin"), 1);
  EXPECT_EQ(std::ranges::count(words, "6"), 1);    // a tick of the vertical axis
  EXPECT_EQ(std::ranges::count(words, "100"), 2);  // one of each horizontal axis
  Chart other = two_panels();
  other.panels[1].y.axis = {0, 1};
  const auto apart = texts(svg_file(other));
  EXPECT_EQ(std::ranges::count(apart, "value"), 1);
  EXPECT_THAT(apart, AllOf(Contains("6"), Contains("0.6")));
}

TEST(SvgFile, PanelsInOneColumnShareTheHorizontalAxis) {
  Chart chart = two_panels();
  arrange(chart, 1);
  EXPECT_EQ(std::ranges::count(texts(svg_file(chart)), "100"), 1);
}

TEST(SvgFile, LabelsAreTextWhateverTheyHold) {
  Chart chart = two_panels();
  chart.heading = "a<b>&\"c\" ]]> \x1b \xff _{x}^2 $(touch x)";
  chart.panels[0].series[0].name = "<script>alert(1)</script>";
  const std::string svg = svg_file(chart);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(texts(svg),
              AllOf(Contains("a<b>&\"c\" ]]> \\x1b \\xff _{x}^2 $(touch x)"), Contains("<script>alert(1)</script>")));
}

TEST(SvgFile, WhatIsNotANumberIsAGap) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Panel panel{.x = {.axis = {1, 5}}, .y = {.axis = {1, 100, Axis::Scale::kLogarithmic}}};
  panel.series.push_back(series("a", {{1, 10}, {2, kNoValue}, {3, 20}, {4, 0}, {5, kInfinity}}));
  panel.series[0].mark = 0;
  const std::string svg = svg_file(one_panel(panel));
  const auto paths = curves(svg);
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(count(attribute(paths[0], "d"), "M"), 2U);  // two pieces of one point
  EXPECT_EQ(count(attribute(paths[0], "d"), "L"), 0U);
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(SvgFile, AValueWithoutAPlaceIsAGapInStepsAndMarks) {
  Panel panel{.x = {.axis = {1, 5}}, .y = {.axis = {1, 100, Axis::Scale::kLogarithmic}}};
  panel.series.push_back(series("", {{1, 10}, {2, 0}, {3, 20}}));
  panel.series[0].join = Series::Join::kSteps;
  const auto drawing = parsed(svg_file(one_panel(panel)));
  // Two points, and a line from the last one to the right edge.
  EXPECT_EQ(std::ranges::count_if(elements(drawing, "path"),
                                  [](const test::Xml& path) {
                                    const std::string d = attribute(path, "d");
                                    return count(d, "M") == 2 && count(d, "H") == 1 && count(d, "V") == 0;
                                  }),
            1);
  EXPECT_EQ(elements(drawing, "circle").size(), 2U);
}

TEST(SvgFile, NothingToDrawIsADrawing) {
  EXPECT_NO_THROW(parsed(svg_file(one_panel({}))));
  Panel empty{.series = {series("none", {})}, .notes = {{1, 1, "a note"}}};
  empty.cells = Cells{};
  empty.bars = {{"no bars", {}, {}}};
  EXPECT_NO_THROW(parsed(svg_file(one_panel(empty))));
}

TEST(SvgFile, ValuesLieInsideTheirPanel) {
  Panel panel{.x = {.axis = {0, 1}}, .y = {.axis = {0, 1}}};
  panel.series.push_back(series("a", {{-5, 0.5}, {0.5, 99}, {2, -99}}));
  panel.series[0].spread = Series::Spread::kBand;
  for (Point& point : panel.series[0].points) point.interval = std::pair(-1e9, 1e9);
  const Chart chart = one_panel(panel);
  const Layout layout = layout_of(chart, 0, std::nullopt);
  for (const auto& circle : elements(parsed(svg_file(chart)), "circle")) {
    if (number(circle, "r") > 3) continue;  // of the legend
    EXPECT_GE(number(circle, "cx"), layout.left - 0.01);
    EXPECT_LE(number(circle, "cx"), layout.right + 0.01);
  }
}

TEST(SvgFile, TheLegendLiesAboveThePanelsAndNamesEachSeriesOnce) {
  Chart chart = two_panels();
  chart.panels[1].rules.push_back({.at = 5, .name = "a rule"});
  const auto words = elements(parsed(svg_file(chart)), "text");
  double legend = 0, title = 0;
  std::size_t named = 0;
  for (const auto& word : words) {
    if (word.data() == "a" || word.data() == "a rule") legend = std::max(legend, number(word, "y")), ++named;
    if (word.data() == "The left") title = number(word, "y");
  }
  EXPECT_EQ(named, 2U);
  EXPECT_LT(legend, title);
}

TEST(SvgFile, ALongLegendAndAHeadingTakeMoreLines) {
  Chart chart = two_panels();
  const double before = number(elements(parsed(svg_file(chart)), "svg")[0], "height");
  for (std::size_t n = 0; n < 30; ++n)
    chart.panels[0].series.push_back(series("method " + std::to_string(n), {{1, 1}}, n));
  chart.heading = std::string(40, 'a') + " " + std::string(60, 'b') + " " + std::string(60, 'c');
  const auto svg = parsed(svg_file(chart));
  const double width = number(elements(svg, "svg")[0], "width");
  EXPECT_GT(number(elements(svg, "svg")[0], "height"), before + 40);
  for (const auto& word : elements(svg, "text"))
    if (word.count("<xmlattr>.x") != 0 || attribute(word, "x") != "") {
      const double end = attribute(word, "text-anchor").empty() ? number(word, "x") + text_width(word.data(), 12) : 0;
      EXPECT_LE(end, width + 120) << word.data();
    }
}

TEST(SvgFile, CellsOfOneColourAreOnePath) {
  const auto svg = parsed(svg_file(one_panel(map())));
  const auto paths = elements(svg, "path");
  ASSERT_EQ(paths.size(), 3U);                          // 0, ½, 1
  EXPECT_EQ(attribute(paths[0], "d"), "M0 0h1M0 1h2");  // the empty cell is in no row
}

TEST(SvgFile, ASharedColourBarStandsOnce) {
  Chart chart{.heading = "maps", .panels = {map(), map()}};
  arrange(chart, 2);
  EXPECT_EQ(std::ranges::count(texts(svg_file(chart)), "share"), 1);
  chart.panels[1].bar = value_bar("other", 0, 2);
  EXPECT_THAT(texts(svg_file(chart)), AllOf(Contains("share"), Contains("other")));
}

TEST(SvgFile, TickLabelsDoNotTouch) {
  Panel panel{.x = {.axis = {0.0039, 1.06, Axis::Scale::kHalving}, .label = percent_label}, .y = {.axis = {0, 1}}};
  Chart chart = one_panel(panel);
  chart.plot_width = 250;
  std::vector<std::pair<double, double>> taken;
  for (const auto& word : elements(parsed(svg_file(chart)), "text")) {
    if (!word.data().ends_with("%")) continue;
    const double half = text_width(word.data(), 12) / 2, x = number(word, "x");
    for (const auto& [left, right] : taken) EXPECT_TRUE(x + half < left || x - half > right) << word.data();
    taken.emplace_back(x - half, x + half);
  }
  EXPECT_GE(taken.size(), 3U);
}

TEST(SvgFile, NotesCoverNeitherMarksNorEachOther) {
  Panel panel{.x = {.axis = {0, 1}}, .y = {.axis = {0, 1}}};
  panel.series.push_back(series("a", {{0.5, 0.5}}));
  for (const char* words : {"first", "second", "third", "fourth", "fifth"}) panel.notes.push_back({0.5, 0.5, words});
  const auto words = texts(svg_file(one_panel(panel)));
  EXPECT_THAT(words, AllOf(Contains("first"), Contains("fourth"), Not(Contains("fifth"))));  // four places are free
}

TEST(SvgFile, StepsGoOnToTheEnd) {
  Panel panel{.x = {.axis = {0, 1}}, .y = {.axis = {0, 1}}};
  Series steps = series("", {{0, 1}, {0.5, 0.5}});
  steps.join = Series::Join::kSteps;
  steps.mark = 0;
  panel.series.push_back(steps);
  const Chart chart = one_panel(panel);
  const auto path = attribute(elements(parsed(svg_file(chart)), "path").at(1), "d");  // behind the grid
  EXPECT_EQ(count(path, "H"), 2U);
  EXPECT_EQ(count(path, "V"), 1U);
}

TEST(Page, EachPanelIsADrawingWithANameAndTold) {
  Chart chart = two_panels();
  chart.panels[0].series[0].points[0].tooltip = "one & a half";
  const std::string html = page_drawings(chart, "power-0").html();
  EXPECT_THAT(html, AllOf(HasSubstr("<svg id=\"power-0-left\""), HasSubstr("<svg id=\"power-0-right\""),
                          HasSubstr("aria-labelledby=\"power-0-left-title power-0-left-desc\""),
                          HasSubstr("<g class=\"point\"><title>one &amp; a half</title>"), Not(HasSubstr("#0072b2"))));
  EXPECT_EQ(count(html, ">value<"), 2U);  // a page's drawings share nothing
  EXPECT_EQ(count(html, "viewBox=\"0 0 400 "), 2U);
  EXPECT_NO_THROW(parsed("<div>" + html + "</div>"));
}

TEST(Page, AMapTellsItsScriptWhatItHolds) {
  const std::string html = page_drawings(one_panel(map()), "m").html();
  EXPECT_THAT(html,
              AllOf(HasSubstr("class=\"map\""), HasSubstr("data-words=\"layer;chunk\""), HasSubstr("data-rows=\"7;8\""),
                    HasSubstr("data-columns=\"0;1;2\""), HasSubstr("data-values=\"a;b;c|d;e;none\"")));
}

TEST(Page, TheLegendIsAList) {
  EXPECT_EQ(count(page_legend(two_panels()).html(), "<li>"), 1U);
  EXPECT_TRUE(page_legend(one_panel(map())).empty());
}

TEST(Text, IsBrokenAtBlanks) {
  EXPECT_EQ(wrapped("one two three", 1000, 12), (std::vector<std::string>{"one two three"}));
  EXPECT_EQ(wrapped("one two three", 60, 12), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("", 60, 12), (std::vector<std::string>{""}));
  EXPECT_EQ(wrapped("unbreakable", 10, 12), (std::vector<std::string>{"\u2026"}));
  EXPECT_EQ(shortened("unbreakable", 1000, 12), "unbreakable");
  EXPECT_EQ(shortened("\u0394\u0394\u0394\u0394", 30, 12), "\u0394\u0394\u2026");
  EXPECT_LE(text_width(shortened(std::string(1000, 'w'), 200, 12), 12), 200);
  EXPECT_NEAR(text_width("10\u2212", 10), 10 * (0.64 + 0.64 + 0.7), 1e-9);
}

}  // namespace
}  // namespace kvs::draw
