// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "draw/axis.h"
#include "draw/marker.h"

namespace kvs::draw {

using Interval = std::optional<std::pair<double, double>>;
inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// A side of a panel: an axis or a list of categories.
struct Side {
  Axis axis{0, 1};
  std::string name = {};                // the quantity, with its unit
  std::vector<std::string> names = {};  // categories instead of an axis, from the left or the top
  std::vector<Axis::Tick> ticks = {};   // replaces ticks at round numbers; for categories, `value` is the index
  Axis::Label label = plain_label;
  std::size_t most = 6;  // number of ticks
  bool operator==(const Side&) const = default;
};

/// A value of a series. A value that is not finite, or not above 0 on a logarithmic axis, leaves a gap in the line.
struct Point {
  double x = 0, y = 0;
  Interval interval = {};    // around y, or around x with Series::Spread::kAcross
  std::string tooltip = {};  // the value in words, shown in a page
  bool hollow = false, faded = false;
};

/// A line, marks, or both.
struct Series {
  enum class Join { kLine, kSteps, kNone };     ///< steps go from left to right and on to the panel's edge
  enum class Spread { kNone, kBand, kAcross };  ///< how intervals are drawn
  std::string name = {};                        // in the legend; empty: not in the legend
  SeriesLook look{{}, 0};
  std::vector<Point> points = {};
  Join join = Join::kLine;
  Spread spread = Spread::kNone;
  double mark = 2.8;         // size; 0: no marks
  bool thin = false;         // thin line
  std::string tooltip = {};  // the line in words, shown in a page
};

/// Rectangles of one colour.
struct Bars {
  struct Bar {
    double left, right, low, high;
    std::string tooltip = {};
  };
  std::string name = {};
  Colour colour = {};
  std::vector<Bar> bars = {};
};

/// A dashed line across a panel.
struct Rule {
  double at = 0;
  bool vertical = false;
  std::string name = {};  // in the legend; empty: not in the legend
  Colour colour = {};
};

/// A label near a point. It is left out where it would cover something.
struct Note {
  double x, y;
  std::string words;
};

/// A heat map.
struct Cells {
  std::vector<std::vector<double>> places;             // [row][column], position on the bar's scale; NaN: no cell
  std::vector<std::vector<std::string>> tooltip = {};  // [row][column] in words, shown in a page
  std::vector<std::string> rows, columns;              // names of rows and columns, shown in a page
  std::string row_word, column_word;
};

/// The scale of a heat map or of coloured lines.
struct ColourBar {
  Colour::Scale scale = Colour::Scale::kSequential;
  std::string name;
  std::vector<Axis::Tick> ticks;  // each value is a position on the scale
  bool operator==(const ColourBar&) const = default;
};

/// An entry of a legend.
struct LegendEntry {
  enum class Kind { kLine, kSteps, kMark, kBar, kRule };
  std::string name;
  Kind kind;
  SeriesLook look{{}, 0};
  bool line_and_mark = false, hollow = false;
  bool operator==(const LegendEntry&) const = default;
};

/// A rectangle with axes, and its content.
struct Panel {
  std::string key = {};                      // unique within the chart
  std::string title = {}, description = {};  // description: text for readers who cannot see the panel
  Side x = {}, y = {};
  std::optional<Side> top = {};                        // second scale of the horizontal axis
  std::vector<std::pair<double, double>> shades = {};  // ranges of x, shaded grey
  std::optional<Cells> cells = {};
  std::vector<Bars> bars = {};
  std::vector<Series> series = {};
  std::vector<Rule> rules = {};
  std::vector<Note> notes = {};
  std::vector<LegendEntry> legend = {};  // further entries of the legend
  std::optional<ColourBar> bar = {};
  std::size_t row = 0, column = 0;
};

/// A figure: a grid of panels. In a file, neighbouring panels share equal axes, names and colour bars. In a page, each
/// panel is a drawing of its own.
struct Chart {
  std::string heading = {};
  std::vector<Panel> panels = {};
  double plot_width = 320, plot_height = 220;  // of a panel without its axes, in units of 1/96 inch
  bool dense = false;                          // a large grid of small panels
  std::size_t group = 0;                       // columns between wider gaps; 0: no wider gaps
};

/// A chart and how the name of its file ends.
struct Figure {
  std::string suffix;
  Chart chart;
};

/// Gives the panels their places, from left to right and row by row.
void arrange(Chart& chart, std::size_t columns);

/// Returns each name of the panels once, in order of first use.
std::vector<LegendEntry> legend_of(const Chart& chart);

/// Names of numbered layers, heads or chunks: "0", "1", …; number_names() gives the numbers themselves, as "5", "6", ….
std::vector<std::string> counted_names(std::size_t count);
std::vector<std::string> number_names(const std::vector<std::size_t>& numbers);
/// Returns a logarithmic side from 10^low to 10^high, with a tick at each power of ten.
Side decade_side(int low, int high);
/// Returns a colour bar for shares, with ticks at 0, ¼, ½, ¾ and 1.
ColourBar share_bar(const std::string& name);
/// Returns a colour bar on a scale from 0 to 1, with ticks at round numbers from `low` to `high`.
ColourBar value_bar(const std::string& name, double low, double high, std::size_t most = 5,
                    Axis::Label label = plain_label);

}  // namespace kvs::draw
