#pragma once

#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs {

/// The names of a map's rows and columns.
struct MapNames {
  std::string row_word, column_word;       // in words for a page, such as "layer", "chunk"
  std::vector<std::string> rows, columns;  // of each row and column
  std::string x_name, y_name;              // of the axes; empty: the words
};

/// A panel with a map; `told` of the cells is what their values are in words.
draw::Panel map_panel(const std::string& key, const std::string& title, const std::string& description,
                      const MapNames& names, const draw::ColourBar& bar, std::vector<std::vector<double>> places,
                      std::vector<std::vector<std::string>> told);

/// The height of a map of so many rows, and its width for so many columns.
double map_height(std::size_t rows);
double map_width(std::size_t columns);

/// " (95 %: 0.9 to 1.1)", or nothing.
std::string interval_words(const draw::Interval& interval);

/// A value with its interval.
struct IntervalRow {
  std::string name;
  double value;
  draw::Interval interval;
  std::string told;  // the value in words
};
/// Relative changes one under the other, zero among them.
draw::Panel interval_panel(const std::string& key, const std::string& title, const std::string& description,
                           const std::string& x_name, const std::vector<IntervalRow>& rows);
double interval_height(std::size_t rows);

}  // namespace kvs
