#include "results/retention_chart.h"

#include <algorithm>
#include <array>
#include <utility>

#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 3> kCutTitles{
    {{"k", "Keys cut"}, {"v", "Values cut"}, {"kv", "Both cut"}}};

/// One for all panels: around every ratio, 1 among them.
draw::Axis ratio_axis(const std::vector<KeptBandCurve>& curves) {
  double low = 1, high = 1;
  for (const KeptBandCurve& curve : curves)
    for (const auto& value : curve.values) {
      low = std::min(low, value.ratio);
      high = std::max(high, value.ratio);
    }
  const double margin = 1.001 + 0.1 * std::min(high / low - 1, 1.0);
  return {low / margin, high * margin, draw::Axis::Scale::kLogarithmic};
}

draw::Series band_series(const KeptBandCurve& curve, std::size_t number) {
  draw::Series series{
      .name = curve.band, .look = draw::series_look(number), .points = {}, .spread = draw::Series::Spread::kBand};
  for (const auto& [share, ratio, interval] : curve.values)
    series.points.push_back({.x = share,
                             .y = ratio,
                             .interval = interval,
                             .told = curve.band + ", " + draw::shown_percent(share) + " kept: perplexity \u00D7 " +
                                     draw::shown(ratio) + interval_words(interval)});
  std::ranges::sort(series.points, {}, &draw::Point::x);
  return series;
}

}  // namespace

draw::Chart retention_chart(const std::string& heading, const std::vector<KeptBandCurve>& curves) {
  draw::Chart chart{.heading = heading, .panels = {}, .plot_width = 240, .plot_height = 210};
  for (const auto& [states, title] : kCutTitles) {
    draw::Panel panel{
        .key = states,
        .title = title,
        .description =
            "Perplexity relative to whole spectra by the share of the spectrum that is kept; the vertical axis "
            "is logarithmic.",
        .x = {.axis = {0, 1.03}, .name = "share of the spectrum kept", .label = draw::percent_label, .most = 5},
        .y = {.axis = ratio_axis(curves), .name = "relative perplexity", .most = 8},
        .rules = {{.at = 1}}};
    for (const KeptBandCurve& curve : curves)
      if (curve.states == states) panel.series.push_back(band_series(curve, panel.series.size()));
    if (!panel.series.empty()) chart.panels.push_back(std::move(panel));
  }
  draw::arrange(chart, kCutTitles.size());
  return chart;
}

}  // namespace kvs
