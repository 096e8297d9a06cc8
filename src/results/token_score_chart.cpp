#include "results/token_score_chart.h"

#include <algorithm>

#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs {
namespace {

using Rows = std::vector<std::vector<double>>;

/// Ends of the colour scale: a single token would set the upper one else.
std::pair<double, double> score_range(const Rows& score) {
  constexpr double kScale = 0.995;  // of the cells lie within
  std::vector<double> sorted;
  for (const auto& row : score) sorted.insert(sorted.end(), row.begin(), row.end());
  std::ranges::sort(sorted);
  const double low = sorted.front();
  return {low, std::max(sorted[static_cast<std::size_t>(kScale * static_cast<double>(sorted.size() - 1))], low + 1e-3)};
}

draw::Panel token_panel(const std::string& key, const std::string& title, const TokenScoreMap& map,
                        const std::string& row_name, const draw::ColourBar& bar, Rows places,
                        std::vector<std::vector<std::string>> told) {
  MapNames names{"layer", "token", map.rows, {}, "token", row_name};
  for (const std::size_t first : map.first) names.columns.push_back(draw::shown_count(first));
  draw::Panel panel =
      map_panel(key, title, title + ", by layer and token.", names, bar, std::move(places), std::move(told));
  panel.x.names.clear();
  panel.x.axis = {static_cast<double>(map.first.front()), static_cast<double>(map.first.back() + map.width)};
  panel.x.most = 10;
  panel.y.ticks = map.layers;
  return panel;
}

}  // namespace

std::size_t tokens_per_column(std::size_t tokens) {
  constexpr std::size_t kMaxColumns = 64;
  return (tokens + kMaxColumns - 1) / kMaxColumns;
}

draw::Chart token_score_chart(const std::string& heading, const TokenScoreMap& map, const std::string& row_name) {
  const auto [low, high] = score_range(map.score);
  const auto rows = static_cast<double>(map.rows.size());
  draw::Chart chart{.heading = heading,
                    .panels = {},
                    .plot_width = 700,
                    .plot_height = std::clamp(std::max(4 * rows, std::min(12 * rows, 200.0)), 60.0, 420.0)};
  Rows places = map.score;
  std::vector<std::vector<std::string>> scores, shares;
  for (auto& row : places) {
    scores.emplace_back();
    for (double& score : row) {
      scores.back().push_back(draw::shown(score));
      score = (score - low) / (high - low);
    }
  }
  for (const auto& row : map.kept) {
    shares.emplace_back();
    for (const double share : row) shares.back().push_back(draw::shown_percent(share));
  }
  chart.panels = {token_panel("relative", "Score relative to a uniform one", map, row_name,
                              draw::value_bar("score", low, high, 9), std::move(places), std::move(scores)),
                  token_panel("kept", "Share of the tokens kept", map, row_name, draw::share_bar("kept"), map.kept,
                              std::move(shares))};
  draw::arrange(chart, 1);
  return chart;
}

}  // namespace kvs
