// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs::draw {

/// A panel's rectangle in the drawing.
struct Frame {
  double left = 0, top = 0, width = 0, height = 0;
  const Panel* panel = nullptr;

  double right() const noexcept { return left + width; }
  double bottom() const noexcept { return top + height; }
  /// Returns the position of a value. The middle of category n is at n + 0.5.
  double x(double value) const noexcept;
  double y(double value) const noexcept;
};

/// A tick with its position in the drawing.
struct PlacedTick {
  double at;
  std::string label;
};
enum class Edge { kBottom, kTop, kLeft };
/// Returns the ticks along an edge of a panel. Labels that do not fit are empty. @param size  font size
std::vector<PlacedTick> placed_ticks(const Frame& frame, Edge edge, double size);

/// Returns the width of the widest label.
double widest(const std::vector<PlacedTick>& ticks, double size);

}  // namespace kvs::draw
