#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/report/chart.h"

namespace kvs {

/// Values one under the other, each with its interval where it has one.
struct Intervals {
  struct Row {
    std::string name;
    double value;
    std::optional<std::pair<double, double>> interval;
    std::string told;  // the value in words
  };
  DrawingText words;
  std::string x_name;  // what the values are: relative changes
  std::vector<Row> rows;
};
Markup draw_intervals(const Intervals& intervals);

}  // namespace kvs
