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

/// A side of a panel: an axis, or categories.
struct Side {
  Axis axis{0, 1};
  std::string name = {};                // what its numbers are, with the unit
  std::vector<std::string> names = {};  // categories instead of an axis, the first one left or on top
  std::vector<Axis::Tick> ticks = {};   // instead of round numbers; of categories the value is the position
  Axis::Label label = plain_label;
  std::size_t most = 6;  // ticks
  bool operator==(const Side&) const = default;
};

/// A value of a series. A value that is not finite, or not above 0 on a logarithmic axis, is a gap in the line.
struct Point {
  double x = 0, y = 0;
  Interval interval = {};  // around y; of Series::Spread::kAcross around x
  std::string told = {};   // the value in words, for a page
  bool hollow = false, faded = false;
};

/// A line, marks, or both.
struct Series {
  enum class Join { kLine, kSteps, kNone };     ///< steps go from left to right, on to the panel's end
  enum class Spread { kNone, kBand, kAcross };  ///< how intervals are drawn
  std::string name = {};                        // in the legend; empty: not there
  SeriesLook look{{}, 0};
  std::vector<Point> points = {};
  Join join = Join::kLine;
  Spread spread = Spread::kNone;
  double mark = 2.8;      // size; 0: none
  bool thin = false;      // line
  std::string told = {};  // the line in words, for a page
};

/// Rectangles of one colour.
struct Bars {
  struct Bar {
    double left, right, low, high;
    std::string told = {};
  };
  std::string name = {};
  Colour colour = {};
  std::vector<Bar> bars = {};
};

/// A dashed line across a panel.
struct Rule {
  double at = 0;
  bool upright = false;
  std::string name = {};  // in the legend; empty: not there
  Colour colour = {};
};

/// A label near a place. It is left out where it would cover something.
struct Note {
  double x, y;
  std::string words;
};

/// A heat map.
struct Cells {
  std::vector<std::vector<double>> places;          // [row][column] on the bar's scale; not a number: no cell
  std::vector<std::vector<std::string>> told = {};  // [row][column] in words, for a page
  std::vector<std::string> rows, columns;           // what a page calls them
  std::string row_word, column_word;
};

/// The scale of a heat map or of coloured lines.
struct ColourBar {
  Colour::Scale scale = Colour::Scale::kSequential;
  std::string name;
  std::vector<Axis::Tick> ticks;  // values are places on the scale
  bool operator==(const ColourBar&) const = default;
};

/// A rectangle with axes, and its content.
struct Panel {
  std::string key = {};                      // unique in the chart
  std::string title = {}, description = {};  // the latter tells a reader who cannot see it
  Side x = {}, y = {};
  std::optional<Side> top = {};                        // what else the horizontal axis measures
  std::vector<std::pair<double, double>> shades = {};  // of x, grey
  std::optional<Cells> cells = {};
  std::vector<Bars> bars = {};
  std::vector<Series> series = {};
  std::vector<Rule> rules = {};
  std::vector<Note> notes = {};
  std::optional<ColourBar> bar = {};
  std::size_t row = 0, column = 0;
};

/// A figure: panels in a grid. In a file, neighbours share equal axes, names and colour bars. A page has one drawing a
/// panel.
struct Chart {
  std::string heading = {};
  std::vector<Panel> panels = {};
  double plot_width = 320, plot_height = 220;  // of a panel without its axes, in units of 1/96 inch
  bool dense = false;                          // a large grid of small panels
  std::size_t group = 0;                       // columns between wider gaps; 0: none
};

/// A chart and how the name of its file ends.
struct Figure {
  std::string suffix;
  Chart chart;
};

/// Gives the panels their places, from left to right and row by row.
void arrange(Chart& chart, std::size_t columns);

/// A line of a legend.
struct LegendEntry {
  enum class Kind { kLine, kSteps, kMark, kBar, kRule };
  std::string name;
  Kind kind;
  SeriesLook look{{}, 0};
  bool line_and_mark = false;
  bool operator==(const LegendEntry&) const = default;
};
/// Every name of the panels once, in their order.
std::vector<LegendEntry> legend_of(const Chart& chart);

/// "0", "1", … and "5", "6", … for numbers of layers, heads or chunks.
std::vector<std::string> counted_names(std::size_t count);
std::vector<std::string> number_names(const std::vector<std::size_t>& numbers);
/// A logarithmic side from one power of ten to another, with a tick at each.
Side decade_side(int low, int high);
/// Ticks at 0, ¼, ½, ¾ and 1 of a scale of shares.
ColourBar share_bar(const std::string& name);
/// Round numbers from `low` to `high` on a scale from 0 to 1.
ColourBar value_bar(const std::string& name, double low, double high, std::size_t most = 5,
                    Axis::Label label = plain_label);

}  // namespace kvs::draw
