#include "results/retrieval_chart.h"

#include <algorithm>
#include <cmath>

#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs {
namespace {

double min_of(const std::vector<std::vector<double>>& values) {
  double least = 0;
  for (const auto& row : values)
    for (const double value : row)
      if (std::isfinite(value)) least = std::min(least, value);
  return least < 0 ? least : -1;
}

draw::Panel retrieval_panel(const RetrievalMap::Values& of, const MapNames& names) {
  const double least = of.is_share ? 0 : min_of(of.values);
  auto places = of.values;
  std::vector<std::vector<std::string>> told = of.told;
  for (std::size_t row = 0; row < places.size(); ++row)
    for (double& value : places[row]) {
      if (of.told.empty()) {
        if (told.size() <= row) told.resize(row + 1);
        told[row].push_back(of.is_share ? draw::shown_percent(value) : draw::shown(value));
      }
      if (!of.is_share) value = 1 - value / least;
    }
  return map_panel(of.key, of.title, of.title + ", by depth and length of the text.", names,
                   of.is_share ? draw::share_bar("") : draw::value_bar("", least, 0), std::move(places),
                   std::move(told));
}

}  // namespace

draw::Chart retrieval_chart(const RetrievalMap& map) {
  MapNames names{"depth", "tokens", {}, {}, "", ""};
  for (const double depth : map.depths) names.rows.push_back(draw::shown_percent(depth));
  for (const std::size_t length : map.lengths) names.columns.push_back(draw::shown_count(length));
  draw::Chart chart{.heading = map.heading,
                    .panels = {},
                    .plot_width = std::clamp(46.0 * static_cast<double>(map.lengths.size()), 170.0, 460.0),
                    .plot_height = std::clamp(26.0 * static_cast<double>(map.depths.size()), 90.0, 420.0)};
  for (const RetrievalMap::Values& values : map.maps) chart.panels.push_back(retrieval_panel(values, names));
  draw::arrange(chart, chart.panels.size());
  return chart;
}

}  // namespace kvs
