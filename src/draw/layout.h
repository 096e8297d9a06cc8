#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "draw/frame.h"

namespace kvs::draw {

/// A panel with its place. A flag is false where a neighbour shows the label, name or bar for both.
struct PlacedPanel {
  Frame frame;
  bool x_labels = true, y_labels = true, x_name = true, y_name = true, bar = true;
  double label_width = 0;  // of the widest one on the left
};

/// The place of every panel, and the names and colour bar that all panels share.
struct Layout {
  double width = 0, height = 0;
  double tick_size = 12;
  std::vector<PlacedPanel> panels;
  double left = 0, right = 0, top = 0, bottom = 0;  // of all panels
  std::string common_x, common_y;                   // names of axes; empty: the panels have their own
  const ColourBar* common_bar = nullptr;
};

/// @param above  height of the heading and the legend
/// @param width  of the drawing; the panels are made to fit. Without it each panel is chart.plot_width wide.
Layout layout_of(const Chart& chart, double above, std::optional<double> width);

/// Left of a colour bar, from the right of its panel, and its width.
inline constexpr double kBarGap = 12, kBarWidth = 11;

}  // namespace kvs::draw
