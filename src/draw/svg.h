#pragma once

#include <optional>
#include <string>

#include "draw/chart.h"

namespace kvs::draw {

/// A chart as an SVG file: complete in itself, with literal colours.
std::string svg_file(const Chart& chart);

/// A size that a page gives a drawing.
struct PageSize {
  double width = 400;                      // of the drawing
  std::optional<double> plot_height = {};  // of the panel; nothing: as in the file
};
/// A panel as part of a page, whose style (page_style) has the colours. @param id  of the element, unique in the page
Markup page_drawing(const Chart& chart, const Panel& panel, const std::string& id, PageSize size = {});
/// All panels; the id of each is `id`-KEY.
Markup page_drawings(const Chart& chart, const std::string& id);
/// The legend as a list of a page; nothing for a chart that needs none.
Markup page_legend(const Chart& chart);

}  // namespace kvs::draw
