#include "calibrate/elitekv/elite_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "draw/axes.h"
#include "embedded/figure_elite_map.h"

namespace kvs {

EliteMap elite_map(const EliteConfig& config, const ModelConfig& model, std::size_t documents, std::size_t tokens) {
  EliteMap map;
  map.heading = model.name + " · RoPElite, p = " + std::to_string(config.norm) + ", r = " + std::to_string(config.r) +
                " · " + std::to_string(documents) + (documents == 1 ? " document of " : " documents of ") +
                std::to_string(tokens) + " tokens";
  if (config.granularity == Granularity::kQueryHead) map.head_word = "Query head";
  map.layers = config.layers;
  map.chunks = model.chunks();
  for (const auto& heads : config.picks) {
    auto& row = map.elite.emplace_back();
    for (const ElitePicks& head : heads) row.push_back(head.chunks);
  }
  return map;
}

FigureImages render_elite_map(const EliteMap& map) {
  const std::size_t heads = map.elite.front().size();
  const std::size_t columns =
      heads <= 4 ? heads : static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(heads))));
  const std::size_t rows = (heads + columns - 1) / columns;
  const double panel_width = std::clamp(7.0 * static_cast<double>(map.chunks), 120.0, 260.0);
  const double panel_height = std::clamp(8.0 * static_cast<double>(map.layers.size()), 70.0, 320.0);
  Figure figure(
      embedded::figure_elite_map,
      std::max(420.0, 138 + panel_width * static_cast<double>(columns) + 14 * static_cast<double>(columns - 1)),
      106 + panel_height * static_cast<double>(rows) + 26 * static_cast<double>(rows - 1));
  FigureData picks;
  std::size_t most = 1;
  for (std::size_t head = 0; head < heads; ++head) {
    for (const auto& layer : map.elite) {
      std::vector<double> line(map.chunks, std::numeric_limits<double>::quiet_NaN());
      for (std::size_t pick = 0; pick < layer[head].size(); ++pick) {
        line.at(layer[head][pick]) = static_cast<double>(pick + 1);
      }
      most = std::max(most, layer[head].size());
      picks.row(line);
    }
    picks.next_block();
  }
  std::vector<std::size_t> chunk_numbers(map.chunks);
  std::iota(chunk_numbers.begin(), chunk_numbers.end(), std::size_t{0});
  return figure.data("picks", picks)
      .set("panels", static_cast<double>(heads))
      .set("columns", static_cast<double>(columns))
      .set("rows", static_cast<double>(rows))
      .set("chunks", static_cast<double>(map.chunks))
      .set("layers", static_cast<double>(map.layers.size()))
      .set_raw("layer_names", index_tics(map.layers, 8))
      .set_raw("chunk_names", index_tics(chunk_numbers, 8))
      .set("most_picks", static_cast<double>(most))
      .set("heading", map.heading)
      .set("head_word", map.head_word)
      .render();
}

}  // namespace kvs
