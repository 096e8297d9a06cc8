// SPDX-License-Identifier: Apache-2.0
#include "results/perturbation.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs::inline results {
namespace {

using Bands = PerturbationResult::Bands;

/// A part of the spectrum. kBandRows is in the order of drawing.
struct BandRow {
  const char *name, *words;
  SimilarityCurve Bands::*curve;
};
constexpr std::array kBandRows{BandRow{"low", "lower half", &Bands::low},
                               BandRow{"low_without_dc", "lower without DC", &Bands::low_without_dc},
                               BandRow{"high", "upper half", &Bands::high}};

/// Returns an axis from a margin below the lowest mean of a group to slightly above 1. The axis cuts off the wide
/// intervals of few documents.
draw::Axis similarity_axis(const PerturbationResult& result, bool same) {
  constexpr double kMargin = 0.35, kLeastRange = 1e-3, kAbove = 0.04;
  double low = 1 - kLeastRange;
  for (const StateKind state : kPerturbedStates)
    for (const BandRow& band : kBandRows)
      low = std::min(low, std::ranges::min((result.bands(state, same).*band.curve).mean));
  low -= kMargin * (1 - low);
  return {low, 1 + kAbove * (1 - low)};
}

/// Clips an interval at 1, the largest similarity.
draw::Interval drawn_interval(const draw::Interval& interval) {
  return interval ? draw::Interval(std::in_place, interval->first, std::min(interval->second, 1.0)) : interval;
}

draw::Series similarity_series(const SimilarityCurve& curve, const std::string& name,
                               const std::vector<std::size_t>& layers, std::size_t number) {
  draw::Series series{.name = name,
                      .look = draw::series_look(number),
                      .points = {},
                      .spread = draw::Series::Spread::kBand,
                      .mark = 2.4};
  for (std::size_t n = 0; n < layers.size(); ++n)
    series.points.push_back({.x = static_cast<double>(layers[n]),
                             .y = curve.mean[n],
                             .interval = drawn_interval(curve.interval[n]),
                             .tooltip = name + ", layer " + std::to_string(layers[n]) + ": " +
                                        draw::shown(curve.mean[n]) + interval_words(curve.interval[n])});
  return series;
}

draw::Panel similarity_panel(const PerturbationResult& result, StateKind state, bool same) {
  const auto first = static_cast<double>(result.layers.front()), last = static_cast<double>(result.layers.back());
  draw::Panel panel{.key = std::string(name_of(state)) + (same ? "-same_count" : "-other_count"),
                    .title = title_of(state) + (same ? ", tokens in place" : ", tokens moved"),
                    .description =
                        "Cosine similarity of a text's states and of its copy's with synonyms, by layer and "
                        "half of the frequencies.",
                    .x = {.axis = {first - 0.5, last + 0.5},
                          .name = "layer",
                          .most = std::clamp<std::size_t>(result.layers.size() - 1, 1, 6)},
                    .y = {.axis = similarity_axis(result, same), .name = "cosine similarity", .most = 8}};
  for (const BandRow& band : kBandRows)
    panel.series.push_back(
        similarity_series(result.bands(state, same).*band.curve, band.words, result.layers, panel.series.size()));
  return panel;
}

}  // namespace

double SimilarityCurve::overall() const {
  return std::accumulate(mean.begin(), mean.end(), 0.0) / static_cast<double>(mean.size());
}

void PerturbationResult::check(const PerturbationResult& of, const JsonCursor& json) {
  if (of.layers.empty()) json.at("layers").fail("at least one layer");
  const std::string expected = std::to_string(of.layers.size()) + " layers";
  for (const bool same : {true, false})
    for (const StateKind state : kPerturbedStates) {
      if (of.documents_of(same) == 0) continue;
      const JsonCursor group = json.at("states").at(name_of(state)).at(same ? "same_count" : "other_count");
      for (const BandRow& band : kBandRows) {
        const SimilarityCurve& curve = of.bands(state, same).*band.curve;
        if (curve.mean.size() != of.layers.size()) group.at(band.name).at("mean").fail(expected);
        if (curve.interval.size() != of.layers.size()) group.at(band.name).at("interval").fail(expected);
      }
    }
}

std::string PerturbationResult::heading() const {
  std::ostringstream text;
  text << head.model.name << " · " << 100 * share << " % of words replaced by synonyms · "
       << documents.same_count + documents.other_count << " × " << tokens << " tokens";
  return text.str();
}

std::string to_text(const PerturbationResult& result) {
  std::ostringstream text;
  text.precision(5);
  for (const bool same : {true, false}) {
    if (result.documents_of(same) == 0) continue;
    text << result.documents_of(same) << " documents whose tokens " << (same ? "stay where they were" : "move")
         << " (means over layers)\n";
    for (const StateKind state : kPerturbedStates) {
      const Bands& bands = result.bands(state, same);
      text << "  " << name_of(state) << ": similarity " << bands.low.overall() << " in the lower half of the bins ("
           << bands.low_without_dc.overall() << " without DC), " << bands.high.overall() << " in the upper\n";
    }
  }
  return text.str();
}

draw::Chart perturbation_chart(const std::string& heading, const PerturbationResult& result) {
  draw::Chart chart{.heading = heading, .panels = {}, .plot_width = 300, .plot_height = 190};
  for (const bool same : {true, false})
    for (const StateKind state : kPerturbedStates)
      if (result.documents_of(same) > 0) chart.panels.push_back(similarity_panel(result, state, same));
  draw::arrange(chart, kPerturbedStates.size());
  return chart;
}

}  // namespace kvs::inline results
