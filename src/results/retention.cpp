// SPDX-License-Identifier: Apache-2.0
#include "results/retention.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "core/exponential.h"
#include "draw/axis.h"
#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs::inline results {
namespace {

std::string_view name_of(KeptBand band) noexcept { return json_names(KeptBand{})[static_cast<std::size_t>(band)]; }
std::string_view name_of(CutStates states) noexcept {
  return json_names(CutStates{})[static_cast<std::size_t>(states)];
}

/// Returns one axis for all panels that covers 1 and all ratios.
draw::Axis ratio_axis(const RetentionResult& result) {
  double low = 1, high = 1;
  for (const RetentionResult::Curve& curve : result.curves)
    for (std::size_t n = 0; n < result.shares.size(); ++n) {
      const double ratio = curve.drawn_ratio(n, result);
      if (std::isnan(ratio)) continue;
      low = std::min(low, ratio);
      high = std::max(high, ratio);
    }
  const double margin = 1.001 + 0.1 * std::min(high / low - 1, 1.0);
  return {low / margin, high * margin, draw::Axis::Scale::kLogarithmic};
}

draw::Series band_series(const RetentionResult& result, const RetentionResult::Curve& curve, std::size_t number) {
  const std::string band(words_of(curve.band));
  draw::Series series{
      .name = band, .look = draw::series_look(number), .points = {}, .spread = draw::Series::Spread::kBand};
  for (std::size_t n = 0; n < result.shares.size(); ++n) {
    const double ratio = curve.drawn_ratio(n, result);
    if (std::isnan(ratio)) continue;
    series.points.push_back({.x = result.shares[n],
                             .y = ratio,
                             .interval = curve.interval[n],
                             .tooltip = band + ", " + draw::shown_percent(result.shares[n]) +
                                        " kept: perplexity \u00D7 " + draw::shown(ratio) +
                                        interval_words(curve.interval[n])});
  }
  std::ranges::sort(series.points, {}, &draw::Point::x);
  return series;
}

}  // namespace

double RetentionResult::Curve::drawn_ratio(std::size_t share, const RetentionResult& of) const {
  if (ratio[share]) return *ratio[share];
  return nll_mean && of.nll_full ? draw::drawn_exponential((*nll_mean)[share] - *of.nll_full) : draw::kNoValue;
}

void RetentionResult::check(const RetentionResult& of, const JsonCursor& json) {
  const std::string expected = std::to_string(of.shares.size()) + " shares";
  for (std::size_t n = 0; n < of.curves.size(); ++n) {
    const Curve& curve = of.curves[n];
    const JsonCursor at = json.at("curves").at(n);
    if (curve.ratio.size() != of.shares.size()) at.at("ratio").fail(expected);
    if (curve.interval.size() != of.shares.size()) at.at("interval").fail(expected);
    if (curve.nll_mean && curve.nll_mean->size() != of.shares.size()) at.at("nll_mean").fail(expected);
    for (std::size_t share = 0; share < curve.ratio.size(); ++share)
      if (curve.ratio[share] && *curve.ratio[share] <= 0) at.at("ratio").at(share).fail("a number above 0");
  }
  if (!of.ppl_full && !of.nll_full) json.at("ppl_full").fail("a perplexity, or nll_full");
}

std::string_view words_of(KeptBand band) noexcept {
  return band == KeptBand::kBest ? "largest \u0394" : band == KeptBand::kLow ? "lowest" : "highest";
}

std::string RetentionResult::heading() const {
  return head.model.name + " · " + subject() + " · " + std::to_string(documents) + " × " + std::to_string(window) +
         " tokens";
}

std::string to_text(const RetentionResult& result) {
  std::ostringstream text;
  text << std::setprecision(4) << "retain: perplexity "
       << exponential_with_error(result.nll_full.value_or(0), result.nll_full_error) << " with whole spectra ("
       << result.subject() << "); relative to it with a share of " << result.units << ' ' << result.unit << "s kept\n  "
       << std::left << std::setw(12) << "kept" << std::right;
  for (const double share : result.shares) text << std::setw(13) << std::to_string(std::lround(100 * share)) + " %";
  text << '\n';
  for (const RetentionResult::Curve& curve : result.curves) {
    text << "  " << std::left << std::setw(12)
         << std::string(name_of(curve.band)) + " " + std::string(name_of(curve.states)) << std::right;
    for (const double nll : curve.nll_mean.value_or(std::vector<double>()))
      text << std::setw(13) << exponential_text(nll - result.nll_full.value_or(0));
    text << '\n';
  }
  return text.str();
}

draw::Chart retention_chart(const std::string& heading, const RetentionResult& result) {
  constexpr std::array kTitles{"Keys cut", "Values cut", "Both cut"};
  draw::Chart chart{.heading = heading, .panels = {}, .plot_width = 240, .plot_height = 210};
  for (const CutStates states : kCutStates) {
    draw::Panel panel{
        .key = std::string(name_of(states)),
        .title = kTitles[static_cast<std::size_t>(states)],
        .description =
            "Perplexity relative to whole spectra by the share of the spectrum that is kept; the vertical axis "
            "is logarithmic.",
        .x = {.axis = {0, 1.03}, .name = "share of the spectrum kept", .label = draw::percent_label, .most = 5},
        .y = {.axis = ratio_axis(result), .name = "relative perplexity", .most = 8},
        .rules = {{.at = 1}}};
    for (const RetentionResult::Curve& curve : result.curves)
      if (curve.states == states) panel.series.push_back(band_series(result, curve, panel.series.size()));
    if (!panel.series.empty()) chart.panels.push_back(std::move(panel));
  }
  draw::arrange(chart, kTitles.size());
  return chart;
}

}  // namespace kvs::inline results
