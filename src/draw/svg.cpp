// SPDX-License-Identifier: Apache-2.0
#include "draw/svg.h"

#include <algorithm>

#include "draw/axes.h"
#include "draw/legend.h"
#include "draw/numbers.h"
#include "draw/plot.h"
#include "draw/text_width.h"

namespace kvs::draw {
namespace {

constexpr double kHeadingSize = 15, kMinHeadingSize = 12.5, kHeadingLine = 20, kAround = 12, kMinMapHeight = 120;
constexpr std::string_view kFont = "DejaVu Sans, Verdana, Arial, sans-serif";

Markup panels(const Layout& layout, bool dense, Medium medium) {
  Markup content;
  for (const PlacedPanel& placed : layout.panels)
    content += grid(placed, layout, medium) + plot(placed.frame, medium) + surroundings(placed, layout, dense, medium);
  return content + common_surroundings(layout, medium);
}

/// A heading on one line if it fits with slightly smaller letters, otherwise on several lines.
struct Heading {
  Heading(const std::string& words, double width) {
    const double fitting = kHeadingSize * width / std::max(text_width(words, kHeadingSize), 1.0);
    if (fitting >= kMinHeadingSize) size = std::min(kHeadingSize, fitting);
    lines = wrapped(words, width + 1, size);
    bottom = words.empty() ? 4 : kHeadingLine * static_cast<double>(lines.size()) + 8;
  }
  Markup markup() const {
    Markup result;
    for (std::size_t n = 0; n < lines.size(); ++n) {
      AttributeList attributes = paint(Medium::kFile, "heading");
      attributes.insert(attributes.end(), {{"x", coordinate(kAround)},
                                           {"y", coordinate(kHeadingLine * static_cast<double>(n + 1) + 2)},
                                           {"font-size", coordinate(size)}});
      if (!lines[n].empty()) result += shape("text", attributes, text(lines[n]));
    }
    return result;
  }
  double size = kHeadingSize, bottom = 0;
  std::vector<std::string> lines;
};

std::string all_descriptions(const Chart& chart) {
  std::string words;
  for (const Panel& panel : chart.panels)
    if (words.find(panel.description) == std::string::npos) words += (words.empty() ? "" : " ") + panel.description;
  return words;
}

}  // namespace

std::string svg_file(const Chart& chart) {
  const std::vector<LegendEntry> entries = legend_of(chart);
  const double width = layout_of(chart, 0, std::nullopt).width;
  const Heading heading(chart.heading, width - 2 * kAround);
  const PlacedLegend legend = placed_legend(entries, kAround, heading.bottom, width - kAround);
  const Layout layout = layout_of(chart, legend.bottom, std::nullopt);
  const Markup content = element("title", chart.heading) + element("desc", all_descriptions(chart)) +
                         shape("rect", {{"width", "100%"}, {"height", "100%"}, {"fill", "#ffffff"}}) +
                         heading.markup() + legend.markup + panels(layout, chart.dense, Medium::kFile);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" +
         shape("svg",
               {{"xmlns", "http://www.w3.org/2000/svg"},
                {"width", coordinate(layout.width)},
                {"height", coordinate(layout.height)},
                {"viewBox", "0 0 " + coordinate(layout.width) + " " + coordinate(layout.height)},
                {"font-family", std::string(kFont)},
                {"font-size", "12"},
                {"role", "img"}},
               content)
             .html() +
         "\n";
}

Markup page_drawing(const Chart& chart, const Panel& panel, const std::string& id, PageSize size) {
  Chart alone = chart;
  alone.panels = {panel};
  alone.panels.front().row = alone.panels.front().column = 0;
  const double least = panel.bar ? kMinMapHeight : 0;  // the bar has labels and a name
  alone.plot_height = size.plot_height.value_or(std::max(chart.plot_height, least));
  alone.dense = false;
  alone.group = 0;
  const Layout layout = layout_of(alone, 0, size.width);
  const Markup names = element("title", {{"id", id + "-title"}}, text(panel.title)) +
                       element("desc", {{"id", id + "-desc"}}, text(panel.description));
  return element("svg",
                 {{"id", id},
                  {"role", "img"},
                  {"viewBox", "0 0 " + coordinate(layout.width) + " " + coordinate(layout.height)},
                  {"style", "--w:" + coordinate(layout.width)},
                  {"aria-labelledby", id + "-title " + id + "-desc"}},
                 names + panels(layout, false, Medium::kPage));
}

Markup page_drawings(const Chart& chart, const std::string& id) {
  Markup drawings;
  for (const Panel& panel : chart.panels)
    drawings += page_drawing(chart, panel, panel.key.empty() ? id : id + "-" + panel.key);
  return drawings;
}

Markup page_legend(const Chart& chart) {
  Markup items;
  for (const LegendEntry& entry : legend_of(chart))
    items += element("li", element("svg", {{"viewBox", "0 0 24 16"}, {"aria-hidden", "true"}},
                                   legend_sample(entry, 0, 8, Medium::kPage)) +
                               text(entry.name));
  return items.empty() ? items : element("ul", {{"class", "legend"}}, items);
}

}  // namespace kvs::draw
