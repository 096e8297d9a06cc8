#include "tasks/retrieval_map.h"

#include <algorithm>
#include <cmath>

#include "draw/axes.h"
#include "embedded/figure_retrieval_map.h"

namespace kvs {

FigureImages render_retrieval_map(const RetrievalMap& map) {
  const auto columns = static_cast<double>(map.lengths.size()), rows = static_cast<double>(map.depths.size());
  const double width = std::clamp(46.0 * columns, 170.0, 460.0), height = std::clamp(26.0 * rows, 90.0, 420.0);
  Figure figure(embedded::figure_retrieval_map, 246 + 2 * width, 116 + height);
  FigureData cells;
  for (const std::vector<double>& row : map.score) cells.row(row);
  cells.next_block();
  double least = 0;
  for (const std::vector<double>& row : map.log_likelihood) {
    cells.row(row);
    least = std::min(least, std::ranges::min(row));
  }
  std::vector<std::size_t> percents;
  for (const double depth : map.depths) percents.push_back(static_cast<std::size_t>(std::lround(100 * depth)));
  return figure.data("cells", cells)
      .set("columns", columns)
      .set("rows", rows)
      .set_raw("length_names", index_tics(map.lengths, 10))
      .set_raw("depth_names", index_tics(percents, 12))
      .set("least", least < 0 ? least : -1)
      .set("heading", map.heading)
      .render();
}

}  // namespace kvs
