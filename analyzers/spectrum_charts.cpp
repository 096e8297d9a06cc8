// SPDX-License-Identifier: Apache-2.0
#include "analyzers/spectrum_charts.h"

#include <algorithm>
#include <cmath>

#include "draw/numbers.h"
#include "results/spectrum_charts.h"

namespace kvs::inline analyzers {
namespace {

constexpr std::size_t kLayerBands = 12, kRopeBands = 6, kHeadBands = 4;  // bands per octave
constexpr std::size_t kMaxRopePanels = 6;

std::size_t samples_of(const SpectrumView& view) {
  return view.spectrum.tokens - (view.with_sinks ? 0 : view.spectrum.sinks);
}

/// The meaning of bin k: "DCT bin k (k/2048 cycles per token)".
std::string bin_name(const SpectrumView& view) {
  const std::size_t samples = samples_of(view);
  return view.spectrum.transform == Transform::kDct
             ? "DCT bin k (k/" + std::to_string(2 * samples) + " cycles per token)"
             : "DFT bin k (k/" + std::to_string(samples) + " cycles per token)";
}

/// Returns the frequency axis that all panels share.
draw::Side frequency_side(const SpectrumView& view) {
  return bin_side(bin_name(view),
                  static_cast<double>(view.spectrum.table(*view.spectrum.states.begin(), view.with_sinks).bins), true);
}

/// Returns the range of the powers of all given states.
Decades decades_of_states(const SpectrumView& view, const StateSet& states) {
  std::vector<double> powers;
  for (const StateKind state : states) {
    const std::vector<double>& values = view.spectrum.table(state, view.with_sinks).values;
    powers.insert(powers.end(), values.begin(), values.end());
  }
  return decades_of(powers);
}

std::vector<draw::Point> banded_points(std::span<const double> power, std::size_t per_octave) {
  std::vector<double> bins, means;
  for (const auto& [bin, mean] : log_bands(power, per_octave)) {
    bins.push_back(bin);
    means.push_back(mean);
  }
  return power_points(bins, means, power[0] > 0 ? power[0] : draw::kNoValue);
}

/// Returns a mark at DC, which the lines do not reach.
draw::Series dc_mark(const draw::SeriesLook& look, double power, double size) {
  draw::Series mark{.look = look, .join = draw::Series::Join::kNone, .mark = size};
  mark.points.push_back({kDcPosition, power > 0 ? power : draw::kNoValue});
  return mark;
}

// Keys before and after RoPE.

/// Returns up to kMaxRopePanels positions spread evenly from the first to the last of `count`.
std::vector<std::size_t> spread(std::size_t count) {
  const std::size_t panels = std::min(count, kMaxRopePanels);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < panels; ++i)
    chosen.push_back(panels == 1 ? 0 : (i * (count - 1) + (panels - 1) / 2) / (panels - 1));
  return chosen;
}

/// Returns the mean over the heads of a layer, with the range of the heads.
draw::Point heads_point(double bin, const std::vector<double>& heads) {
  double sum = 0;
  for (const double power : heads) sum += power;
  const auto [least, most] = std::ranges::minmax(heads);
  const double mean = sum / static_cast<double>(heads.size());
  return {.x = bin, .y = mean > 0 ? mean : draw::kNoValue, .interval = std::pair(least, most)};
}

void add_heads(const PowerTable& table, std::size_t layer, bool before, draw::Panel& panel) {
  std::vector<std::vector<Band>> heads;
  std::vector<double> dc;
  for (std::size_t head = 0; head < table.heads[layer]; ++head) {
    heads.push_back(log_bands(table.row(layer, head), kRopeBands));
    dc.push_back(table.row(layer, head)[0]);
  }
  draw::Series curve{.name = before ? "before RoPE" : "after RoPE",
                     .look = {draw::series_colour(before ? 0 : 1), 0},
                     .spread = draw::Series::Spread::kBand,
                     .mark = 0};
  for (std::size_t n = 0; n < heads.front().size(); ++n) {
    std::vector<double> powers(heads.size());
    std::ranges::transform(heads, powers.begin(), [&](const auto& head) { return head[n].power; });
    curve.points.push_back(heads_point(heads.front()[n].bin, powers));
  }
  draw::Series mark = dc_mark(curve.look, heads_point(kDcPosition, dc).y, 2.2);
  mark.points.front().hollow = !before;
  panel.series.push_back(std::move(curve));
  panel.series.push_back(std::move(mark));
}

// A panel for each head.

constexpr std::size_t kPagePanels = 240;
constexpr double kHeadWidth = 104, kHeadHeight = 54;
constexpr double kMinPage = 480;  // width of a page of few panels; the height is half of it, room for the name of y

std::size_t layers_per_page(std::size_t heads) noexcept { return std::max<std::size_t>(1, kPagePanels / heads); }

/// Returns the number of groups in which `layers` are placed next to each other, each `heads` panels wide, so that the
/// page is closest to portrait format.
std::size_t groups_of(std::size_t layers, std::size_t heads) {
  constexpr double kPortrait = 0.707;
  double best = HUGE_VAL;
  std::size_t groups = 1;
  for (std::size_t candidate = 1; candidate <= layers; ++candidate) {
    const double width = kHeadWidth * static_cast<double>(candidate * heads);
    const double height = kHeadHeight * static_cast<double>((layers + candidate - 1) / candidate);
    const double distance = std::abs(std::log(width / height / kPortrait));
    if (distance < best) best = distance, groups = candidate;
  }
  return groups;
}

/// Keeps labels away from the panels' edges, where labels of neighbours would overlap.
draw::Side head_power_side(const Decades& decades) {
  draw::Side side = power_side(decades);
  side.ticks.clear();
  const int step = decades.high - decades.low > 5 ? 2 : 1;
  for (int exponent = decades.low + 1; exponent < decades.high; ++exponent)
    if (exponent % step == 0)
      side.ticks.push_back({std::pow(10.0, exponent), draw::decade_label(std::pow(10.0, exponent))});
  return side;
}

draw::Side head_bin_side(const SpectrumView& view) {
  draw::Side side = frequency_side(view);
  const double last = side.axis.high();  // there the label would touch the next panel's
  std::erase_if(side.ticks, [&](const draw::Axis::Tick& tick) { return tick.value == 1 || tick.value > 0.4 * last; });
  return side;
}

draw::Panel head_panel(const SpectrumView& view, std::size_t layer, std::size_t head, const draw::Side& x,
                       const draw::Side& y) {
  draw::Panel panel{.key = "",
                    .title = "L" + std::to_string(view.spectrum.layers[layer]) + " H" + std::to_string(head),
                    .description = "Power by frequency along the token axis, a panel for each layer and KV head.",
                    .x = x,
                    .y = y};
  for (const StateKind state : view.spectrum.states) {
    const draw::SeriesLook look{draw::series_colour(state == StateKind::kKPre    ? 0
                                                    : state == StateKind::kKPost ? 1
                                                                                 : 2),
                                0};
    const auto power = view.spectrum.table(state, view.with_sinks).row(layer, head);
    panel.series.push_back(
        {.name = title_of(state), .look = look, .points = banded_points(power, kHeadBands), .mark = 0, .thin = true});
    panel.series.push_back(dc_mark(look, power[0], 0.8));
  }
  return panel;
}

/// Returns a page of layers [first, last).
draw::Chart heads_page(const SpectrumView& view, std::size_t first, std::size_t last, const Decades& decades) {
  const PowerTable& table = view.spectrum.table(*view.spectrum.states.begin(), view.with_sinks);
  const std::size_t heads = table.most_heads(), layers = last - first,
                    rows = (layers + groups_of(layers, heads) - 1) / groups_of(layers, heads),
                    columns = heads * ((layers + rows - 1) / rows);
  draw::Chart chart{.heading = "Power by layer and head: " + subject_of(view),
                    .plot_width = std::max(kHeadWidth, kMinPage / static_cast<double>(columns)),
                    .plot_height = std::max(kHeadHeight, kMinPage / 2 / static_cast<double>(rows)),
                    .dense = true,
                    .group = heads};
  const draw::Side x = head_bin_side(view), y = head_power_side(decades);
  for (std::size_t layer = first; layer < last; ++layer)
    for (std::size_t head = 0; head < table.heads[layer]; ++head) {
      draw::Panel& panel = chart.panels.emplace_back(head_panel(view, layer, head, x, y));
      panel.row = (layer - first) % rows;
      panel.column = (layer - first) / rows * heads + head;
    }
  return chart;
}

}  // namespace

std::string subject_of(const SpectrumView& view) {
  const Spectrum& spectrum = view.spectrum;
  const bool all = view.with_sinks || spectrum.sinks == 0;
  return std::string(view.model_name) +
         (all ? ", all " + std::to_string(spectrum.tokens) + " tokens"
              : ", tokens " + std::to_string(spectrum.sinks) + " to " + std::to_string(spectrum.tokens - 1)) +
         ", " + std::to_string(spectrum.documents) + (spectrum.documents == 1 ? " document" : " documents");
}

std::vector<Band> log_bands(std::span<const double> power, std::size_t per_octave) {
  std::vector<Band> bands;
  const auto steps = static_cast<double>(per_octave);
  std::size_t bin = 1;
  while (bin < power.size()) {
    const double band = std::floor(std::log2(static_cast<double>(bin)) * steps + 1e-9);
    double sum = 0, log_sum = 0;
    std::size_t count = 0;
    while (bin < power.size() && std::floor(std::log2(static_cast<double>(bin)) * steps + 1e-9) == band) {
      sum += power[bin];
      log_sum += std::log(static_cast<double>(bin));
      ++count;
      ++bin;
    }
    bands.push_back({std::exp(log_sum / static_cast<double>(count)), sum / static_cast<double>(count)});
  }
  return bands;
}

draw::Chart spectrum_layers_chart(const SpectrumView& view) {
  std::vector<StatePower> states;
  for (const StateKind state : view.spectrum.states) {
    const PowerTable& table = view.spectrum.table(state, view.with_sinks);
    StatePower& of_state = states.emplace_back(StatePower{std::string(name_of(state)), title_of(state)});
    of_state.last = static_cast<double>(table.bins);
    for (std::size_t layer = 0; layer < table.layers; ++layer) {
      const std::vector<double> mean = table.layer_mean(layer);
      auto& curve = of_state.power.emplace_back();
      for (const auto& [bin, power] : log_bands(mean, kLayerBands)) {
        curve.push_back(power);
        if (layer == 0) of_state.bins.push_back(bin);
      }
      of_state.dc.push_back(mean[0] > 0 ? mean[0] : draw::kNoValue);
    }
  }
  return power_chart("Power along the token axis by layer: " + subject_of(view), view.spectrum.layers, states,
                     bin_name(view));
}

draw::Chart spectrum_rope_chart(const SpectrumView& view) {
  const std::vector<std::size_t> chosen = spread(view.spectrum.layers.size());
  draw::Chart chart{
      .heading = "Keys before and after RoPE: " + subject_of(view), .plot_width = 220, .plot_height = 150};
  const Decades decades = decades_of_states(view, {StateKind::kKPre, StateKind::kKPost});
  for (const std::size_t layer : chosen) {
    draw::Panel panel{
        .key = std::to_string(layer),
        .title = "Layer " + std::to_string(view.spectrum.layers[layer]),
        .description = "Power of keys before and after RoPE by frequency; the bands span a layer's heads.",
        .x = frequency_side(view),
        .y = power_side(decades)};
    for (const bool before : {true, false})
      add_heads(view.spectrum.table(before ? StateKind::kKPre : StateKind::kKPost, view.with_sinks), layer, before,
                panel);
    chart.panels.push_back(std::move(panel));
  }
  draw::arrange(chart, std::min<std::size_t>(3, chosen.size()));
  return chart;
}

std::size_t spectrum_heads_pages(std::size_t layers, std::size_t heads) noexcept {
  return (layers + layers_per_page(heads) - 1) / layers_per_page(heads);
}

std::vector<draw::Chart> spectrum_heads_charts(const SpectrumView& view) {
  const Decades decades = decades_of_states(view, view.spectrum.states);
  const std::size_t layers = view.spectrum.layers.size(),
                    step = layers_per_page(
                        view.spectrum.table(*view.spectrum.states.begin(), view.with_sinks).most_heads());
  std::vector<draw::Chart> pages;
  for (std::size_t first = 0; first < layers; first += step)
    pages.push_back(heads_page(view, first, std::min(first + step, layers), decades));
  return pages;
}

}  // namespace kvs::inline analyzers
