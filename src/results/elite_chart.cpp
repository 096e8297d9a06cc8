// SPDX-License-Identifier: Apache-2.0
#include "results/elite_chart.h"

#include <algorithm>
#include <cmath>

#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs::inline results {
namespace {

MapNames elite_names(const EliteMap& map) {
  return {"layer",
          "chunk",
          draw::number_names(map.layers),
          draw::counted_names(map.chunks),
          "RoPE chunk (0 rotates fastest)",
          ""};
}

std::size_t max_picks(const EliteMap& map) {
  std::size_t most = 1;
  for (const auto& layer : map.elite)
    for (const auto& picks : layer) most = std::max(most, picks.size());
  return most;
}

/// Maps a pick to the colour scale: 0 for the first pick, 1 for the last.
double pick_place(std::size_t pick, std::size_t most) {
  return most == 1 ? 0 : static_cast<double>(pick) / static_cast<double>(most - 1);
}

draw::ColourBar pick_bar(std::size_t most) {
  draw::ColourBar bar{draw::Colour::Scale::kOrder, "order of the pick", {}};
  const std::size_t step = std::max<std::size_t>(1, (most + 5) / 6);
  for (std::size_t pick = 0; pick < most; pick += step)
    bar.ticks.push_back({pick_place(pick, most), std::to_string(pick + 1)});
  return bar;
}

draw::Panel head_panel(const EliteMap& map, std::size_t head, std::size_t most) {
  std::vector<std::vector<double>> places(map.layers.size(), std::vector<double>(map.chunks, draw::kNoValue));
  std::vector<std::vector<std::string>> tooltips(map.layers.size(), std::vector<std::string>(map.chunks, "not picked"));
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer)
    for (std::size_t pick = 0; pick < map.elite[layer][head].size(); ++pick) {
      const std::size_t chunk = map.elite[layer][head][pick];
      places[layer].at(chunk) = pick_place(pick, most);
      tooltips[layer].at(chunk) = "pick " + std::to_string(pick + 1);
    }
  const std::string number = std::to_string(head);
  return map_panel("head-" + number, map.head_word + " " + number,
                   "Order in which the chunks of head " + number + " were picked, by layer and chunk.",
                   elite_names(map), pick_bar(most), std::move(places), std::move(tooltips));
}

std::string perplexity_label(double nll) {
  const double value = std::exp(nll);
  return std::isfinite(value) ? draw::shown_short(value, 4) : "e^" + draw::shown_short(nll, 4);
}

/// Formats the label of the GQA line. An arrow marks a line above the panel's upper end `high`.
std::string gqa_name(const EliteSweep& sweep, double high) {
  return "GQA, " + draw::counted(sweep.gqa_heads, "head") + ": " + perplexity_label(sweep.nll_gqa) +
         (draw::drawn_exponential(sweep.nll_gqa) > high ? " \u2191" : "");
}

draw::Series trial_series(const EliteSweep& sweep, bool joint) {
  draw::Series series{.name = joint ? "J-LRD" : "S-LRD", .look = draw::series_look(joint ? 0 : 1), .points = {}};
  for (const auto& [r, d_ckv, is_joint, nll] : sweep.trials)
    if (is_joint == joint)
      series.points.push_back({.x = static_cast<double>(r),
                               .y = draw::drawn_exponential(nll),
                               .tooltip = series.name + ", r " + std::to_string(r) + ", d_ckv " +
                                          std::to_string(d_ckv) + ": perplexity " + perplexity_label(nll)});
  return series;
}

/// Returns an axis that covers the perplexities of the full cache and the trials, and GQA's unless it is far above.
draw::Axis perplexity_axis(const EliteSweep& sweep) {
  constexpr double kMargin = 1.25, kFarAbove = 3;  // a higher value would squeeze the curves
  double low = draw::drawn_exponential(sweep.nll_full), high = low;
  for (const auto& trial : sweep.trials) {
    low = std::min(low, draw::drawn_exponential(trial.nll));
    high = std::max(high, draw::drawn_exponential(trial.nll));
  }
  high *= kMargin;
  const double gqa = sweep.gqa_heads == 0 ? 0 : draw::drawn_exponential(sweep.nll_gqa);
  if (gqa < kFarAbove * high) high = std::max(high, kMargin * gqa);
  return {low / kMargin, high, draw::Axis::Scale::kLogarithmic};
}

}  // namespace

draw::Chart elite_chart(const EliteMap& map) {
  const std::size_t heads = map.elite.front().size(), most = max_picks(map);
  const std::size_t columns =
      heads <= 4 ? heads : static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(heads))));
  draw::Chart chart{.heading = map.heading,
                    .panels = {},
                    .plot_width = std::clamp(7.0 * static_cast<double>(map.chunks), 120.0, 260.0),
                    .plot_height = std::clamp(8.0 * static_cast<double>(map.layers.size()), 70.0, 320.0)};
  for (std::size_t head = 0; head < heads; ++head) chart.panels.push_back(head_panel(map, head, most));
  draw::arrange(chart, columns);
  return chart;
}

draw::Chart elite_share_chart(const EliteMap& map) {
  const std::size_t heads = map.elite.front().size();
  std::vector<std::vector<double>> shares;
  std::vector<std::vector<std::string>> tooltips;
  for (const auto& layer : map.elite) {
    std::vector<std::size_t> kept(map.chunks);
    for (const auto& picks : layer)
      for (const std::size_t chunk : picks) ++kept.at(chunk);
    shares.emplace_back();
    tooltips.emplace_back();
    for (const std::size_t count : kept) {
      shares.back().push_back(static_cast<double>(count) / static_cast<double>(heads));
      tooltips.back().push_back(std::to_string(count) + " of " + draw::counted(heads, "head"));
    }
  }
  return {.heading = map.heading,
          .panels = {map_panel("shares", "Heads that keep a chunk",
                               "Share of the heads of a layer that keep a chunk rotated, by layer and chunk.",
                               elite_names(map), draw::share_bar("share of the heads"), std::move(shares),
                               std::move(tooltips))},
          .plot_width = 260,
          .plot_height = std::clamp(8.0 * static_cast<double>(map.layers.size()), 70.0, 320.0)};
}

draw::Chart elite_sweep_chart(const EliteSweep& sweep) {
  draw::Panel panel{.key = "trials",
                    .title = "",
                    .description = "Perplexity on documents held out against r, of caches of one size.",
                    .x = {.name = "rotated chunks of a head, r"},
                    .y = {.axis = perplexity_axis(sweep), .name = "perplexity, held out", .most = 7}};
  draw::Side ranks{.name = "rank of the latent, d_ckv"};
  const auto [first, last] = std::ranges::minmax(sweep.trials, {}, &EliteSweep::Trial::r);
  const double margin = std::max(0.5, 0.04 * static_cast<double>(last.r - first.r));
  panel.x.axis = ranks.axis = {static_cast<double>(first.r) - margin, static_cast<double>(last.r) + margin};
  for (const auto& trial : sweep.trials) {
    const auto at = static_cast<double>(trial.r);
    if (std::ranges::find(panel.x.ticks, at, &draw::Axis::Tick::value) != panel.x.ticks.end()) continue;
    panel.x.ticks.push_back({at, std::to_string(trial.r)});
    ranks.ticks.push_back({at, std::to_string(trial.d_ckv)});
  }
  std::ranges::sort(panel.x.ticks, {}, &draw::Axis::Tick::value);
  std::ranges::sort(ranks.ticks, {}, &draw::Axis::Tick::value);
  panel.top = std::move(ranks);
  for (const bool joint : {true, false})
    if (draw::Series series = trial_series(sweep, joint); !series.points.empty())
      panel.series.push_back(std::move(series));
  if (sweep.gqa_heads > 0)
    panel.rules.push_back({.at = draw::drawn_exponential(sweep.nll_gqa),
                           .name = gqa_name(sweep, panel.y.axis.high()),
                           .colour = draw::series_colour(2)});
  panel.rules.push_back(
      {.at = draw::drawn_exponential(sweep.nll_full), .name = "full cache: " + perplexity_label(sweep.nll_full)});
  return {.heading = sweep.heading, .panels = {std::move(panel)}, .plot_width = 480, .plot_height = 230};
}

}  // namespace kvs::inline results
