#pragma once

#include <string>
#include <vector>

#include "export/report/chart.h"

namespace kvs {

/// Values by row and column as coloured cells, with a key to the colours beneath.
struct HeatMap {
  DrawingText words;
  std::string row_word, column_word;              // "layer", "chunk"
  std::vector<std::string> rows, columns;         // names of the rows and columns
  std::vector<std::vector<std::string>> colours;  // [row][column]: class of a cell; empty: no cell
  std::vector<std::vector<std::string>> values;   // [row][column]: what a reader is told
  ColourKey key;
  double width = 400;
};
Markup heat_map(const HeatMap& map);

}  // namespace kvs
