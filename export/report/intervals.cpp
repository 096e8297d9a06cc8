#include "export/report/intervals.h"

#include <algorithm>
#include <cmath>

#include "export/report/numbers.h"

namespace kvs {
namespace {

constexpr double kIntervalsWidth = 400, kIntervalHeight = 17, kNamesWidth = 158, kIntervalsTop = 30,
                 kIntervalsBottom = 44;

/// From the lowest to the highest end, zero among them; wide intervals of a few rows are cut at `kCut` times the
/// largest value, or they would squeeze the others.
Axis interval_axis(const Intervals& intervals) {
  constexpr double kCut = 2.5;
  double low = 0, high = 0, largest = 0;
  for (const auto& row : intervals.rows) largest = std::max(largest, std::abs(row.value));
  for (const auto& row : intervals.rows) {
    const auto [least, most] = row.interval.value_or(std::pair(row.value, row.value));
    low = std::max(std::min(low, least), -kCut * largest);
    high = std::min(std::max(high, most), kCut * largest);
  }
  return Axis::rounded(low, high, 5);
}

}  // namespace

Markup draw_intervals(const Intervals& intervals) {
  const double height = kIntervalsTop + kIntervalHeight * static_cast<double>(intervals.rows.size()) + kIntervalsBottom;
  const Frame frame(kIntervalsWidth, height, interval_axis(intervals), Axis(0, 1), {.left = kNamesWidth});
  Markup content =
      frame.axes({.title = intervals.words.title, .x = intervals.x_name, .y = "", .x_tick = percent_label}, 5, 0);
  double y = kIntervalsTop + kIntervalHeight / 2;
  for (const auto& row : intervals.rows) {
    Markup mark = element("title", row.name + ": " + row.told);
    if (row.interval)
      mark += element("line", {{"class", "whisker"},
                               {"x1", coordinate(frame.x(row.interval->first))},
                               {"x2", coordinate(frame.x(row.interval->second))},
                               {"y1", coordinate(y)},
                               {"y2", coordinate(y)}});
    mark += element("circle",
                    {{"class", "dot s0"}, {"cx", coordinate(frame.x(row.value))}, {"cy", coordinate(y)}, {"r", "3.5"}});
    content += label(kNamesWidth - 8, y + 4, row.name, "end", "tick") + element("g", {{"class", "point"}}, mark);
    y += kIntervalHeight;
  }
  content += element("line", {{"class", "zero"},
                              {"x1", coordinate(frame.x(0))},
                              {"x2", coordinate(frame.x(0))},
                              {"y1", coordinate(frame.top())},
                              {"y2", coordinate(frame.bottom())}});
  return drawing(intervals.words, kIntervalsWidth, height, content);
}

}  // namespace kvs
