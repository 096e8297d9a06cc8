#include "results/similarity_chart.h"

#include <algorithm>

#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs {
namespace {

/// To a little above 1, from a margin below the least mean of the group: wide intervals of few documents are cut off.
draw::Axis similarity_axis(const std::vector<SimilarityPanel>& panels, std::size_t group) {
  constexpr double kMargin = 0.35, kMinRange = 1e-3, kAbove = 0.04;
  double low = 1 - kMinRange;
  for (const SimilarityPanel& panel : panels)
    for (const auto& curve : panel.curves)
      if (panel.group == group && !curve.mean.empty()) low = std::min(low, std::ranges::min(curve.mean));
  low -= kMargin * (1 - low);
  return {low, 1 + kAbove * (1 - low)};
}

/// No similarity is above 1.
draw::Interval drawn_interval(const draw::Interval& interval) {
  return interval ? draw::Interval(std::in_place, interval->first, std::min(interval->second, 1.0)) : interval;
}

draw::Series similarity_series(const SimilarityPanel::Curve& curve, const std::vector<std::size_t>& layers,
                               std::size_t number) {
  draw::Series series{.name = curve.name,
                      .look = draw::series_look(number),
                      .points = {},
                      .spread = draw::Series::Spread::kBand,
                      .mark = 2.4};
  for (std::size_t n = 0; n < layers.size(); ++n)
    series.points.push_back({.x = static_cast<double>(layers[n]),
                             .y = curve.mean[n],
                             .interval = drawn_interval(curve.interval[n]),
                             .told = curve.name + ", layer " + std::to_string(layers[n]) + ": " +
                                     draw::shown(curve.mean[n]) + interval_words(curve.interval[n])});
  return series;
}

}  // namespace

draw::Chart similarity_chart(const std::string& heading, const std::vector<std::size_t>& layers,
                             const std::vector<SimilarityPanel>& panels, std::size_t columns) {
  draw::Chart chart{.heading = heading, .panels = {}, .plot_width = 300, .plot_height = 190};
  for (const SimilarityPanel& of : panels) {
    draw::Panel panel{
        .key = of.key,
        .title = of.title,
        .description =
            "Cosine similarity of a text's states and of its copy's with synonyms, by layer and "
            "half of the frequencies.",
        .x = {.axis = {static_cast<double>(layers.front()) - 0.5, static_cast<double>(layers.back()) + 0.5},
              .name = "layer",
              .most = std::clamp<std::size_t>(layers.size() - 1, 1, 6)},
        .y = {.axis = similarity_axis(panels, of.group), .name = "cosine similarity", .most = 8}};
    for (std::size_t n = 0; n < of.curves.size(); ++n)
      panel.series.push_back(similarity_series(of.curves[n], layers, n));
    chart.panels.push_back(std::move(panel));
  }
  draw::arrange(chart, columns);
  return chart;
}

}  // namespace kvs
