#pragma once

#include <string>
#include <vector>

#include "draw/figure.h"

namespace kvs {

/// What caches lose by the bytes that they hold.
struct ParetoPlot {
  struct Point {
    std::string label, method;
    double bytes = 0;  // share of the full cache's
    double kl = 0;     // nats a token
    bool front = false;
  };
  std::string heading;
  std::vector<Point> points;  // at least one
};

/// KL divergence against bytes, both logarithmic, a colour and sign for each method, the front as a line with labels.
FigureImages render_pareto(const ParetoPlot& plot);

}  // namespace kvs
