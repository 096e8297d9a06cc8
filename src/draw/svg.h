// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "draw/chart.h"

namespace kvs::draw {

/// Returns a chart as a self-contained SVG file with literal colours.
std::string svg_file(const Chart& chart);

/// The size of a drawing in a page.
struct PageSize {
  double width = 400;                      // of the drawing
  std::optional<double> plot_height = {};  // of the panel; nullopt: as in the file
};
/// Returns a panel as part of a page, whose style (page_style()) has the colours. @param id  id of the element, unique
/// in the page
Markup page_drawing(const Chart& chart, const Panel& panel, const std::string& id, PageSize size = {});
/// Returns all panels; the id of each is `id`-KEY.
Markup page_drawings(const Chart& chart, const std::string& id);
/// Returns the legend as a list for a page; empty for a chart that needs no legend.
Markup page_legend(const Chart& chart);

}  // namespace kvs::draw
