// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "draw/frame.h"

namespace kvs::draw {

/// A panel with its position. A flag is false if a neighbour shows the label, name or bar for both panels.
struct PlacedPanel {
  Frame frame;
  bool x_labels = true, y_labels = true, x_name = true, y_name = true, bar = true;
  double label_width = 0;  // of the widest label on the left
};

/// The position of every panel, and the names and the colour bar that all panels share.
struct Layout {
  double width = 0, height = 0;
  double tick_size = 12;
  std::vector<PlacedPanel> panels;
  double left = 0, right = 0, top = 0, bottom = 0;  // of the area of all panels
  std::string common_x, common_y;                   // axis names; empty: each panel has its own
  const ColourBar* common_bar = nullptr;
};

/// @param above  height of the heading and the legend
/// @param width  width of the drawing, which the panels are made to fit; without it each panel is chart.plot_width wide
Layout layout_of(const Chart& chart, double above, std::optional<double> width);

/// Distance of a colour bar from the right edge of its panel, and its width.
inline constexpr double kBarGap = 12, kBarWidth = 11;

}  // namespace kvs::draw
