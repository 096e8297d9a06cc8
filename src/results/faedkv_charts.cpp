// SPDX-License-Identifier: Apache-2.0
#include "results/faedkv_charts.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs::inline results {
namespace {

/// Returns an axis over the decades of the energy before filtering. The rounding errors that filtering leaves are below
/// the axis and not drawn.
draw::Side energy_side(const std::vector<double>& energy) {
  constexpr int kDrawn = 9;
  double least = HUGE_VAL, most = 0;
  for (const double value : energy) {
    if (value > 0) least = std::min(least, value);
    most = std::max(most, value);
  }
  if (most <= 0) return draw::decade_side(0, 1);
  const int high = static_cast<int>(std::ceil(std::log10(most)));
  return draw::decade_side(std::min(high - 1, std::max(high - kDrawn, static_cast<int>(std::floor(std::log10(least))))),
                           high);
}

template <class Value>
draw::Series filter_series(const std::vector<Value>& values, bool after, double first, double least) {
  draw::Series series{.name = after ? "after" : "before",
                      .look = {draw::series_colour(after ? 1 : 5), 0},
                      .points = {},
                      .mark = 0,
                      .thin = true};
  for (std::size_t n = 0; n < values.size(); ++n) {
    const double value = values[n];
    series.points.push_back({first + static_cast<double>(n), value >= least ? value : draw::kNoValue});
  }
  return series;
}

template <class Value>
draw::Axis around(const std::vector<Value>& one, const std::vector<Value>& other) {
  constexpr double kMargin = 0.04;
  const auto [low, high] = std::ranges::minmax(one);
  const auto [least, most] = std::ranges::minmax(other);
  const double bottom = std::min(low, least), top = std::max(high, most), margin = kMargin * (top - bottom);
  return {bottom - margin, top + margin};
}

draw::Panel token_row(const FilterEffect& effect, const FilterEffect::Panel& of) {
  const auto first = static_cast<double>(effect.first_token);
  draw::Panel panel{
      .key = "tokens",
      .title = of.title,
      .description = "A channel along the tokens before and after filtering.",
      .x = {.axis = {first, first + static_cast<double>(of.before.size() - 1)}, .name = "token", .most = 10},
      .y = {.axis = around(of.before, of.after), .name = "state", .most = 8}};
  for (const bool after : {false, true})
    panel.series.push_back(filter_series(after ? of.after : of.before, after, first, -HUGE_VAL));
  return panel;
}

draw::Panel energy_row(const FilterEffect& effect, const FilterEffect::Panel& of) {
  draw::Panel panel{.key = "energy",
                    .title = "",
                    .description = "The channel's energy by frequency before and after filtering.",
                    .x = {.axis = {0, static_cast<double>(std::max<std::size_t>(of.energy_before.size(), 2) - 1)},
                          .name = effect.removed.empty() ? "frequency bin" : "frequency bin (grey: removed)"},
                    .y = energy_side(of.energy_before)};
  panel.y.name = "energy";
  panel.x.most = 10;
  for (const auto& [first, last] : effect.removed)
    panel.shades.emplace_back(static_cast<double>(first) - 0.5, static_cast<double>(last) - 0.5);
  for (const bool after : {false, true})
    panel.series.push_back(filter_series(after ? of.energy_after : of.energy_before, after, 0, panel.y.axis.low()));
  return panel;
}

}  // namespace

SignedLogScale::SignedLogScale(std::span<const std::vector<double>> delta) {
  std::vector<double> sizes;
  for (const std::vector<double>& row : delta)
    for (const double value : row)
      if (value != 0) sizes.push_back(std::abs(value));
  if (sizes.empty()) return;
  std::ranges::sort(sizes);
  linear = sizes[sizes.size() / 2];
  limit = color(sizes.back());
}

double SignedLogScale::color(double delta) const noexcept {
  return static_cast<double>(std::asinh(static_cast<long double>(delta) / linear));  // the ratio may overflow a double
}

std::vector<draw::Axis::Tick> SignedLogScale::ticks() const {
  const long double most = linear * std::sinh(static_cast<long double>(limit));
  const int high = static_cast<int>(std::floor(std::log10(most) + 1e-9));
  const int low = std::max(high - 3, static_cast<int>(std::ceil(std::log10(linear) - 1e-9)));
  std::vector<draw::Axis::Tick> ticks{{0, "0"}};
  for (int exponent = std::min(low, high); exponent <= high; ++exponent)
    for (const double sign : {1.0, -1.0}) {
      const double value = sign * std::pow(10.0, exponent);
      ticks.push_back({color(value) / limit, draw::shown_change(value, 1)});
    }
  std::ranges::sort(ticks, {}, &draw::Axis::Tick::value);
  return ticks;
}

draw::Chart ablation_chart(const std::string& heading, const AblationResult& ablation) {
  const std::size_t layers = ablation.layers.size(), chunks = ablation.delta.front().size();
  draw::Chart chart{
      .heading = heading, .panels = {}, .plot_width = map_width(chunks), .plot_height = map_height(layers)};
  const SignedLogScale scale(ablation.delta);
  auto places = ablation.delta;
  std::vector<std::vector<double>> scaled;
  std::vector<std::vector<std::string>> changes(layers), shares(layers);
  for (std::size_t row = 0; row < layers; ++row) {
    scaled.push_back(scaled_to_unit(ablation.delta[row]));
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const double delta = ablation.delta[row][chunk];
      const draw::Interval& interval = ablation.interval[row][chunk];
      changes[row].push_back(draw::shown_change(delta) +
                             (interval ? " (95\u00A0%: " + draw::shown_range(*interval) + ")" : ""));
      shares[row].push_back(draw::shown(scaled[row][chunk], 2));
      places[row][chunk] = scale.color(delta) / scale.limit;
    }
  }
  const MapNames names{"layer",
                       "frequency chunk",
                       draw::number_names(ablation.layers),
                       draw::counted_names(chunks),
                       "frequency chunk (0 is the lowest)",
                       ""};
  chart.panels = {
      map_panel(
          "map", "\u0394 = (PPL \u2212 PPL\u2080) / PPL\u2080",
          "Change of perplexity when one chunk of one layer's spectrum is lost, by layer and chunk; the colour is a "
          "signed logarithm.",
          names, {draw::Colour::Scale::kDiverging, "", scale.ticks()}, std::move(places), std::move(changes)),
      map_panel("scaled", "\u0394 scaled to 0\u20131 by layer",
                "The same change scaled to 0 to 1 within each layer, by layer and chunk.", names,
                draw::value_bar("", 0, 1), std::move(scaled), std::move(shares))};
  draw::arrange(chart, 2);
  return chart;
}

draw::Chart filter_chart(const FilterEffect& effect) {
  draw::Chart chart{.heading = effect.heading, .panels = {}, .plot_width = 290, .plot_height = 130};
  for (const FilterEffect::Panel& panel : effect.panels) chart.panels.push_back(token_row(effect, panel));
  for (const FilterEffect::Panel& panel : effect.panels) chart.panels.push_back(energy_row(effect, panel));
  draw::arrange(chart, effect.panels.size());
  return chart;
}

draw::Chart chunk_sweep_chart(const std::string& heading, const FaedkvQuality& quality) {
  constexpr double kBeside = 1.25, kMargin = 0.06;
  draw::Panel panel{
      .key = "",
      .title = "",
      .description = "Perplexity against the number of chunks, with the unchanged model's as a dashed line.",
      .x = {.name = "chunks C"},
      .y = {.name = "perplexity", .most = 8}};
  std::map<std::size_t, double> points;
  for (const FaedkvQuality::Point& point : *quality.sweep)
    points.emplace(point.chunks, draw::drawn_exponential(point.nll_mean));
  const double base = draw::drawn_exponential(quality.nll_full);
  double low = base, high = base;
  draw::Series series{.name = "kept chunks", .look = draw::series_look(0), .points = {}};
  for (const auto& [chunks, perplexity] : points) {
    low = std::min(low, perplexity);
    high = std::max(high, perplexity);
    series.points.push_back({.x = static_cast<double>(chunks),
                             .y = perplexity,
                             .tooltip = std::to_string(chunks) + " chunks: " + draw::shown(perplexity, 4)});
    panel.x.ticks.push_back({static_cast<double>(chunks), std::to_string(chunks)});
  }
  panel.series.push_back(std::move(series));
  panel.x.axis = {panel.x.ticks.front().value / kBeside, panel.x.ticks.back().value * kBeside,
                  draw::Axis::Scale::kHalving};
  panel.y.axis = {low - kMargin * (high - low), high + kMargin * (high - low)};
  panel.rules.push_back({.at = base, .name = "unchanged model"});
  return {.heading = heading, .panels = {std::move(panel)}, .plot_width = 420, .plot_height = 220};
}

}  // namespace kvs::inline results
