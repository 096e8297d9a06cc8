#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/figure.h"

namespace kvs {

/// Perplexity relative to the unchanged model's against the share of the spectrum that is kept.
struct RetentionFigure {
  struct Point {
    double ratio, least, most;  // with its interval
  };
  struct Curve {
    std::string title;          // of the band
    std::size_t panel;          // 0: keys are cut, 1: values, 2: both
    std::vector<Point> points;  // [share]
  };
  std::string heading;
  std::vector<Curve> curves;
  std::vector<double> shares;  // in (0, 1]
};

/// One panel each for keys, values and both; a logarithmic axis of the ratio.
FigureImages render_retention(const RetentionFigure& retention);

}  // namespace kvs
