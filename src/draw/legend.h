// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "draw/chart.h"

namespace kvs::draw {

/// Draws a line, a mark or a field as in the panels, 24 units wide. @param x, y  left end and vertical middle
Markup legend_sample(const LegendEntry& entry, double x, double y, Medium medium);

/// Legend of a file: rows from left to right above the panels, where the legend covers nothing.
struct PlacedLegend {
  Markup markup;
  double bottom;
};
PlacedLegend placed_legend(const std::vector<LegendEntry>& entries, double left, double top, double right);

}  // namespace kvs::draw
