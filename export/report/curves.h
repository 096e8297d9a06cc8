#pragma once

#include <string>
#include <vector>

#include "export/report/chart.h"

namespace kvs {

/// Curves over one axis, coloured by their order, on logarithmic axes.
struct Curves {
  DrawingText words;
  std::vector<double> x;               // ascending, above 0
  std::vector<std::vector<double>> y;  // [curve][x]; gaps where not above 0
  std::vector<std::string> names;      // [curve]
  std::string x_name, y_name;
};
Markup draw_curves(const Curves& curves);

}  // namespace kvs
