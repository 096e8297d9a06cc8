// SPDX-License-Identifier: Apache-2.0
#include "draw/cells.h"

#include <cmath>
#include <map>

#include "draw/numbers.h"

namespace kvs::draw {
namespace {

std::string joined(const std::vector<std::string>& words, char separator) {
  std::string all;
  for (const std::string& word : words) {
    if (&word != &words.front()) all += separator;
    all += word;
  }
  return all;
}

/// Draws runs of cells of one colour as lines through the middle of the cells, in units of cells.
std::map<std::size_t, std::string> paths_by_level(const Cells& cells, Colour::Scale scale, Medium medium) {
  std::map<std::size_t, std::string> paths;
  for (std::size_t row = 0; row < cells.places.size(); ++row) {
    const std::vector<double>& places = cells.places[row];
    const auto level = [&](std::size_t column) { return level_of({scale, places[column]}, medium); };
    for (std::size_t column = 0; column < places.size();) {
      std::size_t end = column + 1;
      if (!std::isnan(places[column])) {
        while (end < places.size() && !std::isnan(places[end]) && level(end) == level(column)) ++end;
        paths[level(column)] +=
            "M" + std::to_string(column) + " " + std::to_string(row) + "h" + std::to_string(end - column);
      }
      column = end;
    }
  }
  return paths;
}

AttributeList tooltip_attributes(const Cells& cells, const Frame& frame, double width, double height) {
  std::vector<std::string> values;
  for (const auto& row : cells.tooltip) values.push_back(joined(row, ';'));
  return {{"class", "map"},
          {"data-at", coordinate(frame.left) + " " + coordinate(frame.top)},
          {"data-cell", coordinate(width) + " " + coordinate(height)},
          {"data-words", cells.row_word + ";" + cells.column_word},
          {"data-rows", joined(cells.rows, ';')},
          {"data-columns", joined(cells.columns, ';')},
          {"data-values", joined(values, '|')}};
}

}  // namespace

Markup cell_shapes(const Frame& frame, Medium medium) {
  const Cells& cells = *frame.panel->cells;
  if (cells.places.empty() || cells.places.front().empty()) return {};
  const Colour::Scale scale = frame.panel->bar ? frame.panel->bar->scale : Colour::Scale::kSequential;
  const double width = frame.width / static_cast<double>(cells.places.front().size()),
               height = frame.height / static_cast<double>(cells.places.size());
  Markup paths;
  for (const auto& [level, d] : paths_by_level(cells, scale, medium)) {
    AttributeList attributes = paint(medium, "cell", at_level(scale, level, medium));
    attributes.emplace_back("d", d);
    paths += shape("path", attributes);
  }
  const std::string transform = "translate(" + coordinate(frame.left) + " " + coordinate(frame.top + 0.5 * height) +
                                ") scale(" + shown_key(width) + " " + shown_key(height) + ")";
  const Markup grid = shape("g", {{"transform", transform}}, paths);
  return medium == Medium::kPage ? shape("g", tooltip_attributes(cells, frame, width, height), grid) : grid;
}

}  // namespace kvs::draw
