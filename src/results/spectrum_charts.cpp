// SPDX-License-Identifier: Apache-2.0
#include "results/spectrum_charts.h"

#include <algorithm>
#include <cmath>

#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs::inline results {
namespace {

using draw::Axis;
using draw::Panel;
using draw::Series;

constexpr double kRounding = 1e-20;  // in squared units of the states, whose values are of order 1
constexpr int kMaxDecades = 12;

bool is_value(const StatePower& state) { return state.key == "v"; }

/// Returns the decades of all states that share a scale with `of`.
Decades shared_decades(const std::vector<StatePower>& states, const StatePower& of) {
  std::vector<double> powers;
  for (const StatePower& state : states) {
    if (is_value(state) != is_value(of)) continue;
    for (const auto& curve : state.power) powers.insert(powers.end(), curve.begin(), curve.end());
    powers.insert(powers.end(), state.dc.begin(), state.dc.end());
  }
  return decades_of(powers);
}

draw::ColourBar depth_bar(const std::vector<std::size_t>& layers) {
  draw::ColourBar bar{draw::Colour::Scale::kOrder, "layer", {}};
  const auto first = static_cast<double>(layers.front());
  if (layers.size() == 1) {
    bar.ticks.push_back({0, draw::plain_label(first)});
    return bar;
  }
  const Axis axis(first, static_cast<double>(layers.back()));
  const std::size_t most = std::clamp<std::size_t>(layers.back() - layers.front(), 1, 6);
  for (auto& [value, label] : axis.ticks(most, draw::plain_label)) bar.ticks.push_back({axis.place(value), label});
  return bar;
}

Series layer_curve(const StatePower& state, const std::vector<std::size_t>& layers, std::size_t n) {
  const auto depth = static_cast<double>(layers[n] - layers.front()),
             depths = std::max(1.0, static_cast<double>(layers.back() - layers.front()));
  Series series{.name = "",
                .look = {draw::order(depth / depths), 0},
                .points = {},
                .tooltip = "layer " + std::to_string(layers[n])};
  series.points = power_points(state.bins, state.power[n], state.dc.empty() ? draw::kNoValue : state.dc[n]);
  series.thin = true;
  series.mark = 0;
  return series;
}

constexpr double kMinShare = 1e-6;

std::vector<std::vector<std::string>> share_tooltips(const std::vector<std::vector<double>>& shares) {
  std::vector<std::vector<std::string>> tooltips;
  for (const auto& row : shares) {
    tooltips.emplace_back();
    for (const double share : row)
      tooltips.back().push_back(std::isnan(share) ? std::string() : draw::shown_percent(share));
  }
  return tooltips;
}

using ChunkShares = std::vector<std::vector<double>>;

/// Returns the states that have chunk shares.
std::vector<std::pair<StateKind, const ChunkShares*>> chunked_states(const SpectrumResult& result) {
  std::vector<std::pair<StateKind, const ChunkShares*>> all;
  for (const StateKind state : kStateKinds)
    if (result.states[state] && result.states[state]->all_tokens.chunk_share)
      all.emplace_back(state, &*result.states[state]->all_tokens.chunk_share);
  return all;
}

/// Returns the exponent of the decade below all shares.
double least_decade(const std::vector<std::pair<StateKind, const ChunkShares*>>& states) {
  double least = 0.1;
  for (const auto& [state, shares] : states)
    for (const auto& row : *shares)
      for (const double share : row) least = std::min(least, std::max(share, kMinShare));
  return std::floor(std::log10(least));
}

/// Returns the shares of the energy in the lowest tenth of the bins, [head][layer]; of heads that a layer lacks, no
/// value.
std::vector<std::vector<double>> low_shares(const SpectrumResult& result, const SpectrumResult::Table& table) {
  std::size_t most = 0;
  for (const SpectrumResult::Summaries& layer : table.heads) most = std::max(most, layer.low_share.size());
  std::vector<std::vector<double>> shares(most);
  for (const SpectrumResult::Summaries& layer : table.heads)
    for (std::size_t head = 0; head < most; ++head)
      shares[head].push_back(head < layer.low_share.size() ? layer.low_share[head][result.tenth()] : draw::kNoValue);
  return shares;
}

draw::ColourBar decade_bar(const std::string& name, double low) {
  draw::ColourBar bar{draw::Colour::Scale::kSequential, name, {}};
  for (double exponent = low; exponent <= 0; ++exponent)
    bar.ticks.push_back({1 - exponent / low, draw::decade_label(std::pow(10, exponent))});
  return bar;
}

}  // namespace

draw::Side bin_side(const std::string& name, double last, bool with_dc) {
  draw::Side side{.axis = Axis(with_dc ? 0.75 * kDcPosition : 1, std::max(last, 2.0), Axis::Scale::kLogarithmic),
                  .name = name};
  if (with_dc) side.ticks.push_back({kDcPosition, "DC"});
  for (double bin = 1; bin <= last; bin *= 10) side.ticks.push_back({bin, draw::plain_label(bin)});
  return side;
}

Decades decades_of(const std::vector<double>& powers) {
  double least = HUGE_VAL, most = 0;
  for (const double power : powers) {
    if (power > kRounding) least = std::min(least, power);
    if (std::isfinite(power)) most = std::max(most, power);
  }
  if (most <= kRounding) return {};
  const int high = static_cast<int>(std::ceil(std::log10(most)));
  return {std::min(high - 1, std::max(high - kMaxDecades, static_cast<int>(std::floor(std::log10(least))))), high};
}

draw::Side power_side(const Decades& decades) {
  draw::Side side = draw::decade_side(decades.low, decades.high);
  side.name = kPowerName;
  return side;
}

std::vector<draw::Point> power_points(const std::vector<double>& bins, const std::vector<double>& power, double dc) {
  std::vector<draw::Point> points;
  if (!std::isnan(dc)) {
    points.push_back({kDcPosition, dc});
    points.push_back({kDcPosition, draw::kNoValue});  // interrupts the line
  }
  for (std::size_t n = 0; n < bins.size(); ++n) points.push_back({bins[n], power[n] > 0 ? power[n] : draw::kNoValue});
  return points;
}

draw::Chart power_chart(const std::string& heading, const std::vector<std::size_t>& layers,
                        const std::vector<StatePower>& states, const std::string& bin_name) {
  draw::Chart chart{.heading = heading, .panels = {}, .plot_width = 230, .plot_height = 220};
  for (const StatePower& state : states) {
    Panel panel{
        .key = state.key,
        .title = state.title,
        .description = "Power of " + state.title +
                       " by frequency along the token axis, one curve for each layer, "
                       "the colours follow the layers; both axes are logarithmic.",
        .x = bin_side(bin_name, std::max(state.last, state.bins.empty() ? 1 : state.bins.back()), !state.dc.empty()),
        .y = power_side(shared_decades(states, state)),
        .bar = depth_bar(layers)};
    Series dc{.name = "", .points = {}, .join = Series::Join::kNone, .mark = 2};
    for (std::size_t n = 0; n < state.power.size(); ++n) {
      panel.series.push_back(layer_curve(state, layers, n));
      if (state.dc.empty()) continue;
      Series point{
          .name = "", .look = panel.series.back().look, .points = {}, .join = Series::Join::kNone, .mark = 1.6};
      point.points.push_back(
          {.x = kDcPosition, .y = state.dc[n], .tooltip = "layer " + std::to_string(layers[n]) + ", DC"});
      panel.series.push_back(std::move(point));
    }
    chart.panels.push_back(std::move(panel));
  }
  draw::arrange(chart, chart.panels.size());
  return chart;
}

draw::Chart energy_share_chart(const std::string& heading, const SpectrumResult& result) {
  draw::Chart chart{.heading = heading,
                    .panels = {},
                    .plot_width = std::clamp(11.0 * static_cast<double>(result.layers.size()), 240.0, 460.0)};
  std::size_t states = 0, heads = 0;
  for (const StateKind state : kStateKinds) {
    if (!result.states[state]) continue;
    ++states;
    for (const bool with_dc : {true, false}) {
      const SpectrumResult::Tokens& tokens = result.states[state]->all_tokens;
      auto shares = low_shares(result, with_dc ? tokens.with_dc : tokens.without_dc);
      auto tooltips = share_tooltips(shares);
      heads = shares.size();
      chart.panels.push_back(
          map_panel(std::string(name_of(state)) + (with_dc ? "" : "-without-dc"),
                    title_of(state) + (with_dc ? ", with DC" : ", without DC"),
                    "Share of the energy in the lowest tenth of the frequencies, by KV head and layer.",
                    {"head", "layer", draw::counted_names(heads), draw::number_names(result.layers), "", ""},
                    draw::share_bar("share of the energy"), std::move(shares), std::move(tooltips)));
    }
  }
  chart.plot_height = std::clamp(17.0 * static_cast<double>(heads), states < 3 ? 70.0 : 44.0, 200.0);
  draw::arrange(chart, 2);
  return chart;
}

draw::Chart energy_chunks_chart(const std::string& heading, const SpectrumResult& result) {
  const auto states = chunked_states(result);
  const double low = least_decade(states);
  std::size_t chunks = 0;
  for (const auto& [state, shares] : states) chunks = std::max(chunks, shares->front().size());
  draw::Chart chart{.heading = heading,
                    .panels = {},
                    .plot_width = std::clamp(12.0 * static_cast<double>(chunks), 110.0, 270.0),
                    .plot_height = map_height(result.layers.size())};
  const MapNames names{"layer", "chunk", draw::number_names(result.layers), draw::counted_names(chunks), "", ""};
  for (const auto& [state, shares] : states) {
    ChunkShares places = *shares;
    for (auto& row : places)
      for (double& share : row) share = 1 - std::log10(std::max(share, kMinShare)) / low;
    chart.panels.push_back(map_panel(
        std::string(name_of(state)), title_of(state), "Share of a layer's energy in each chunk of the spectrum.", names,
        decade_bar("share of the energy", low), std::move(places), share_tooltips(*shares)));
  }
  if (!chart.panels.empty()) draw::arrange(chart, chart.panels.size());
  return chart;
}

}  // namespace kvs::inline results
