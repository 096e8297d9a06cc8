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
  /// The place of a value. The middle of category n is at n + 0.5.
  double x(double value) const noexcept;
  double y(double value) const noexcept;
};

/// A tick with its place in the drawing.
struct PlacedTick {
  double at;
  std::string label;
};
enum class Edge { kBottom, kTop, kLeft };
/// The ticks along an edge of a panel; labels for which there is no room are empty. @param size  of the letters
std::vector<PlacedTick> placed_ticks(const Frame& frame, Edge edge, double size);

/// How wide the widest label is.
double widest(const std::vector<PlacedTick>& ticks, double size);

}  // namespace kvs::draw
