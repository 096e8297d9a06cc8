#include "export/report/heat_map.h"

#include <algorithm>
#include <map>

#include "export/report/numbers.h"

namespace kvs {
namespace {

constexpr double kMapLeft = 58, kMapRight = 14, kMapTop = 30;
constexpr double kMapKey = 62;  // under the map: names of columns, what they are, the key

/// How many names apart two names stand that have `room` each of what a name takes.
std::size_t stride(double room, double taken) {
  std::size_t step = 1;
  for (const std::size_t candidate : {1U, 2U, 5U, 10U, 20U, 50U, 100U, 200U, 500U, 1000U}) {
    step = candidate;
    if (static_cast<double>(step) * room >= taken) break;
  }
  return step;
}

std::size_t longest(const std::vector<std::string>& words) {
  std::size_t most = 1;
  for (const std::string& name : words) most = std::max(most, name.size());
  return most;
}

std::string joined(const std::vector<std::string>& words, char separator = ';') {
  std::string all;
  for (const std::string& word : words) {
    if (&word != &words.front()) all += separator;
    all += word;
  }
  return all;
}

/// Cells of one colour as one path: a large map stays small.
Markup map_cells(const HeatMap& map, double cell_width, double cell_height) {
  std::map<std::string, std::string> paths;
  const std::string box = "h" + coordinate(cell_width + 0.3) + "v" + coordinate(cell_height + 0.3) + "h-" +
                          coordinate(cell_width + 0.3) + "z";
  for (std::size_t row = 0; row < map.rows.size(); ++row)
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const std::string& colour = map.colours[row][column];
      if (colour.empty()) continue;
      paths[colour] += "M" + coordinate(kMapLeft + cell_width * static_cast<double>(column)) + " " +
                       coordinate(kMapTop + cell_height * static_cast<double>(row)) + box;
    }
  Markup result;
  for (const auto& [colour, path] : paths) result += element("path", {{"class", "cell " + colour}, {"d", path}});
  return result;
}

Markup map_names(const HeatMap& map, double cell_width, double cell_height) {
  Markup result;
  const std::size_t by_row = stride(cell_height, 13);
  for (std::size_t n = 0; n < map.rows.size(); n += by_row)
    result +=
        label(kMapLeft - 8, kMapTop + cell_height * (static_cast<double>(n) + 0.5) + 4, map.rows[n], "end", "tick");
  const double bottom = kMapTop + cell_height * static_cast<double>(map.rows.size());
  const std::size_t by_column = stride(cell_width, 9 * static_cast<double>(longest(map.columns)) + 4);
  for (std::size_t n = 0; n < map.columns.size(); n += by_column)
    result +=
        label(kMapLeft + cell_width * (static_cast<double>(n) + 0.5), bottom + 16, map.columns[n], "middle", "tick");
  result += label(map.width - kMapRight, bottom + 34, map.column_word, "end", "name");
  result += label(kMapLeft, kMapTop - 10, map.words.title, "start", "panel");
  return result + label(kMapLeft - 8, kMapTop - 10, map.row_word, "end", "name");
}

}  // namespace

Markup heat_map(const HeatMap& map) {
  const auto rows = static_cast<double>(map.rows.size()), columns = static_cast<double>(map.columns.size());
  const double cell_width = (map.width - kMapLeft - kMapRight) / columns;
  const double cell_height = std::clamp(200 / rows, 5.0, 24.0);
  const double bottom = kMapTop + cell_height * rows;
  std::vector<std::string> values;
  for (const auto& row : map.values) values.push_back(joined(row));
  const Markup grid = element("g",
                              {{"class", "map"},
                               {"data-at", coordinate(kMapLeft) + " " + coordinate(kMapTop)},
                               {"data-cell", coordinate(cell_width) + " " + coordinate(cell_height)},
                               {"data-words", map.row_word + ";" + map.column_word},
                               {"data-rows", joined(map.rows)},
                               {"data-columns", joined(map.columns)},
                               {"data-values", joined(values, '|')}},
                              map_cells(map, cell_width, cell_height));
  return drawing(map.words, map.width, bottom + kMapKey,
                 grid + map_names(map, cell_width, cell_height) + colour_key(map.key, kMapLeft, bottom + 27));
}

}  // namespace kvs
