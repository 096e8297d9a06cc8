#include "export/report/lines.h"

#include "export/report/markers.h"
#include "export/report/numbers.h"

namespace kvs {
namespace {

constexpr double kLinesWidth = 400, kLinesHeight = 280;
constexpr Frame::Margins kLinesMargins{.right = 20};
constexpr double kApart = 2.5;          // intervals of neighbouring series at one place
constexpr std::size_t kLinesTicks = 5;  // of the vertical axis

std::string line_path(const Frame& frame, const Lines::Line& line) {
  std::string path;
  for (const Lines::Point& point : line.points)
    path += (path.empty() ? "M" : "L") + coordinate(frame.x(point.x)) + " " + coordinate(frame.y(point.y));
  return path;
}

Markup point_mark(const Frame& frame, const Lines::Line& line, const Lines::Point& point, std::size_t series) {
  const double x = frame.x(point.x) + kApart * static_cast<double>(series);
  Markup mark = element("title", line.name + ", " + point.told);
  if (point.interval)
    mark += element("line", {{"class", "whisker"},
                             {"x1", coordinate(x)},
                             {"x2", coordinate(x)},
                             {"y1", coordinate(frame.y(point.interval->first))},
                             {"y2", coordinate(frame.y(point.interval->second))}});
  return element("g", {{"class", "point s" + std::to_string(series % kMarkers)}},
                 mark + marker(series, false, frame.x(point.x), frame.y(point.y)));
}

}  // namespace

Markup draw_lines(const Lines& lines) {
  const Frame frame(kLinesWidth, kLinesHeight, lines.x, lines.y, kLinesMargins);
  Markup content =
      frame.axes({.title = lines.words.title, .x = lines.x_name, .y = lines.y_name, .x_tick = lines.x_tick},
                 lines.x_ticks, kLinesTicks);
  for (std::size_t n = 0; n < lines.lines.size(); ++n)
    content +=
        element("path", {{"class", "curve s" + std::to_string(n % kMarkers)}, {"d", line_path(frame, lines.lines[n])}});
  for (std::size_t n = 0; n < lines.lines.size(); ++n)
    for (const Lines::Point& point : lines.lines[n].points) content += point_mark(frame, lines.lines[n], point, n);
  return drawing(lines.words, kLinesWidth, kLinesHeight, content);
}

}  // namespace kvs
