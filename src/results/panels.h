// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs::inline results {

/// The names of a map's rows and columns.
struct MapNames {
  std::string row_word, column_word;       // shown on the page, such as "layer", "chunk"
  std::vector<std::string> rows, columns;  // one name for each row and column
  std::string x_name, y_name;              // names of the axes; if empty, the words are used
};

/// Returns a panel with a map.
/// @param tooltip  the value of each cell in words
draw::Panel map_panel(const std::string& key, const std::string& title, const std::string& description,
                      const MapNames& names, const draw::ColourBar& bar, std::vector<std::vector<double>> places,
                      std::vector<std::vector<std::string>> tooltip);

/// Returns the height of a map with `rows` rows, and the width of a map with `columns` columns.
double map_height(std::size_t rows);
double map_width(std::size_t columns);

/// Formats " (95 %: 0.9 to 1.1)"; returns "" without an interval.
std::string interval_words(const draw::Interval& interval);

/// A value with its interval.
struct IntervalRow {
  std::string name;
  double value;
  draw::Interval interval;
  std::string tooltip;  // the value in words
};
/// Returns a panel with one relative change per row; the axis includes zero.
draw::Panel interval_panel(const std::string& key, const std::string& title, const std::string& description,
                           const std::string& x_name, const std::vector<IntervalRow>& rows);
double interval_height(std::size_t rows);

}  // namespace kvs::inline results
