#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/report/chart.h"

namespace kvs {

/// A few series over one quantity, each with a colour and a form of its own; every point tells its value.
struct Lines {
  struct Point {
    double x, y;
    std::optional<std::pair<double, double>> interval;
    std::string told;  // the value in words
  };
  struct Line {
    std::string name;
    std::vector<Point> points;  // by x
  };
  DrawingText words;
  Axis x, y;
  std::string x_name, y_name;
  Axis::Label x_tick = plain_label;
  std::size_t x_ticks = 6;
  std::vector<Line> lines;
};
Markup draw_lines(const Lines& lines);

}  // namespace kvs
