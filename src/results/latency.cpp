// SPDX-License-Identifier: Apache-2.0
#include "results/latency.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "draw/numbers.h"

namespace kvs::inline results {
namespace {

/// A phase of a run, and the members that hold its times.
struct Phase {
  const char *name, *title;
  std::vector<double> CacheLatency::*ms;
  std::vector<double> CacheLatency::*ratio;
};
constexpr Phase kPhases[] = {{"prefill", "Prefill", &CacheLatency::prefill_ms, &CacheLatency::prefill_ratio},
                             {"decode", "Decoding", &CacheLatency::decode_ms, &CacheLatency::decode_ratio}};

draw::Series time_series(const CacheLatency& cache, const Phase& phase, const std::vector<std::size_t>& lengths,
                         std::size_t number) {
  draw::Series series{.name = cache.label, .look = draw::series_look(number), .points = {}};
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    const double ms = (cache.*phase.ms)[n];
    series.points.push_back({.x = static_cast<double>(lengths[n]),
                             .y = ms,
                             .tooltip = cache.label + ", " + draw::shown_count(lengths[n]) + " tokens: " +
                                        draw::shown(ms) + "\u00A0ms, \u00D7 " + draw::shown((cache.*phase.ratio)[n])});
  }
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

std::string row_text(const CacheLatency& cache, const Phase& phase) {
  std::ostringstream text;
  text << "  " << std::left << std::setw(40) << cache.label << std::right;
  for (std::size_t n = 0; n < (cache.*phase.ms).size(); ++n) {
    std::ostringstream cell;
    cell << std::setprecision(3) << (cache.*phase.ms)[n] << " (× " << (cache.*phase.ratio)[n] << ')';
    text << std::setw(19) << cell.str();  // "×" takes two bytes in UTF-8
  }
  return text.str();
}

}  // namespace

void LatencyResult::check(const LatencyResult& result, const JsonCursor& json) {
  const std::size_t lengths = result.lengths.size();
  if (lengths == 0 || result.lengths.front() == 0) json.at("lengths").fail("lengths above 0");
  if (result.caches.empty()) json.at("caches").fail("at least one cache");
  for (std::size_t n = 0; n < result.caches.size(); ++n)
    for (const Phase& phase : kPhases)
      for (const auto& [values, unit] : {std::pair(phase.ms, "_ms"), std::pair(phase.ratio, "_ratio")})
        if ((result.caches[n].*values).size() != lengths)
          json.at("caches").at(n).at(std::string(phase.name) + unit).fail(std::to_string(lengths) + " of them");
}

std::string LatencyResult::heading() const {
  return head.model.name + " · " + dtype + " on " + device + " · medians of " + std::to_string(repeats);
}

std::string to_text(const LatencyResult& result) {
  std::ostringstream text;
  for (const Phase& phase : kPhases) {
    text << phase.name << ", ms a token (relative to " << result.caches.front().label << ") by tokens before it\n"
         << std::left << std::setw(42) << "" << std::right;
    for (const std::size_t length : result.lengths) text << std::setw(18) << length;
    text << '\n';
    for (const CacheLatency& cache : result.caches) text << row_text(cache, phase) << '\n';
  }
  return text.str();
}

draw::Chart latency_chart(const std::string& heading, const LatencyResult& result) {
  draw::Chart chart{.heading = heading, .panels = {}, .plot_width = 300, .plot_height = 220};
  for (const Phase& phase : kPhases) {
    draw::Panel panel{.key = phase.name,
                      .title = phase.title,
                      .description = "Time of a token by the tokens before it, for each cache.",
                      .x = length_side(result.lengths),
                      .y = {.name = "ms a token", .most = 8}};
    double most = 0;
    for (const CacheLatency& cache : result.caches) {
      panel.series.push_back(time_series(cache, phase, result.lengths, panel.series.size()));
      for (const double time : cache.*phase.ms) most = std::max(most, time);
    }
    panel.y.axis = draw::Axis::rounded(0, most, 8);
    chart.panels.push_back(std::move(panel));
  }
  draw::arrange(chart, 2);
  return chart;
}

}  // namespace kvs::inline results
