#include "results/latency_chart.h"

#include <algorithm>

#include "draw/numbers.h"

namespace kvs {
namespace {

draw::Series time_series(const std::string& label, const CacheTimes::Phase& phase,
                         const std::vector<std::size_t>& lengths, std::size_t number) {
  draw::Series series{.name = label, .look = draw::series_look(number), .points = {}};
  for (std::size_t n = 0; n < lengths.size(); ++n)
    series.points.push_back({.x = static_cast<double>(lengths[n]),
                             .y = phase.milliseconds[n],
                             .told = label + ", " + draw::shown_count(lengths[n]) +
                                     " tokens: " + draw::shown(phase.milliseconds[n]) + "\u00A0ms" +
                                     (phase.ratio.empty() ? "" : ", \u00D7 " + draw::shown(phase.ratio[n]))});
  return series;
}

draw::Side length_side(const std::vector<std::size_t>& lengths) {
  constexpr double kBeside = 1.2;
  draw::Side side{.axis = draw::Axis(static_cast<double>(lengths.front()) / kBeside,
                                     static_cast<double>(lengths.back()) * kBeside, draw::Axis::Scale::kHalving),
                  .name = "tokens before"};
  for (const std::size_t length : lengths)
    side.ticks.push_back({static_cast<double>(length), draw::shown_count(length)});
  return side;
}

}  // namespace

draw::Chart latency_chart(const std::string& heading, const std::vector<std::size_t>& lengths,
                          const std::vector<CacheTimes>& caches) {
  draw::Chart chart{.heading = heading, .panels = {}, .plot_width = 300, .plot_height = 220};
  for (const bool prefill : {true, false}) {
    draw::Panel panel{.key = prefill ? "prefill" : "decode",
                      .title = prefill ? "Prefill" : "Decoding",
                      .description = "Time of a token by the tokens before it, for each cache.",
                      .x = length_side(lengths),
                      .y = {.name = "ms a token", .most = 8}};
    double most = 0;
    for (const CacheTimes& cache : caches) {
      const CacheTimes::Phase& phase = prefill ? cache.prefill : cache.decode;
      panel.series.push_back(time_series(cache.label, phase, lengths, panel.series.size()));
      for (const double time : phase.milliseconds) most = std::max(most, time);
    }
    panel.y.axis = draw::Axis::rounded(0, most, 8);
    chart.panels.push_back(std::move(panel));
  }
  draw::arrange(chart, 2);
  return chart;
}

}  // namespace kvs
