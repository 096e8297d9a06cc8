// SPDX-License-Identifier: Apache-2.0
#include "results/divergence.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "draw/numbers.h"

namespace kvs::inline results {
namespace {

constexpr double kLeastDrawn = 1e-8;  // nats; smaller divergences are rounding

double edge(std::int64_t bin) { return std::pow(10.0, static_cast<double>(bin) / kBinsPerDecade); }

draw::Panel histogram_panel(const DivergenceCurves& curves) {
  std::size_t tokens = curves.zeros;
  for (const auto& bin : curves.histogram) tokens += bin.tokens;
  draw::Panel panel{.key = "histogram",
                    .title = "Tokens by divergence",
                    .description = "Share of the tokens in each quarter of a decade of KL divergence.",
                    .x = {.name = "KL divergence, nats (quarters of a decade)"},
                    .y = {.name = "share of the tokens"}};
  draw::Bars bars{"", draw::series_colour(0), {}};
  double most = 0, low = 1, high = kLeastDrawn;
  for (const auto& [bin, count] : curves.histogram) {
    const double left = edge(bin), right = edge(bin + 1),
                 share = static_cast<double>(count) / static_cast<double>(tokens);
    if (right <= kLeastDrawn) continue;
    bars.bars.push_back({left, right, 0, share,
                         draw::shown(left) + " to " + draw::shown(right) + "\u00A0nats: " + draw::shown_count(count) +
                             " tokens, " + draw::shown_percent(share)});
    most = std::max(most, share);
    low = std::min(low, left);
    high = std::max(high, right);
  }
  panel.x.axis = draw::Axis(low, std::max(high, 10 * low), draw::Axis::Scale::kLogarithmic);
  panel.y.axis = draw::Axis(0, std::max(1.05 * most, 0.01));
  panel.y.label = draw::percent_label;
  panel.bars.push_back(std::move(bars));
  return panel;
}

draw::Panel position_panel(const DivergenceCurves& curves) {
  draw::Panel panel{.key = "position",
                    .title = "Divergence by position",
                    .description = "Mean KL divergence of the tokens of each part of the documents.",
                    .x = {.axis = {static_cast<double>(curves.first), static_cast<double>(curves.parts.back().end)},
                          .name = "position of the token"},
                    .y = {.name = "KL divergence, nats a token"}};
  draw::Series series{.look = draw::series_look(0), .points = {}, .mark = 2.2};
  double most = 0;
  std::size_t begin = curves.first;
  for (const auto& [end, kl, difference] : curves.parts) {
    series.points.push_back({.x = static_cast<double>(begin + end) / 2,
                             .y = kl,
                             .tooltip = "tokens " + draw::shown_count(begin) + " to " + draw::shown_count(end - 1) +
                                        ": " + draw::shown(kl) + "\u00A0nats"});
    most = std::max(most, kl);
    begin = end;
  }
  panel.y.axis = draw::Axis::rounded(0, std::max(most, kLeastDrawn), panel.y.most);
  panel.series.push_back(std::move(series));
  panel.column = 1;
  return panel;
}

}  // namespace

void DivergenceTail::check(const DivergenceTail& tail, const JsonCursor& json) {
  if (tail.median > tail.p99 || tail.p99 > tail.p999) json.fail("quantiles in ascending order");
}

void DivergenceCurves::check(const DivergenceCurves& curves, const JsonCursor& json) {
  constexpr std::int64_t kBins = 400;
  for (std::size_t n = 0; n < curves.histogram.size(); ++n)
    if (const std::int64_t bin = curves.histogram[n].bin;
        std::abs(bin) > kBins || (n > 0 && bin <= curves.histogram[n - 1].bin))
      json.at("histogram").at(n).at("bin").fail("ascending bins from -400 to 400");
  std::size_t begin = curves.first;
  if (curves.parts.empty()) json.at("parts").fail("at least one part");
  for (std::size_t n = 0; n < curves.parts.size(); ++n) {
    if (curves.parts[n].end <= begin) json.at("parts").at(n).at("end").fail("more than " + std::to_string(begin));
    begin = curves.parts[n].end;
  }
}

std::string tail_text(const DivergenceTail& tail) {
  std::ostringstream text;
  text << std::setprecision(3) << "median " << tail.median << ", 99 % " << tail.p99 << ", 99.9 % " << tail.p999
       << ", largest " << tail.largest.kl << " at token " << tail.largest.position << " of document "
       << tail.largest.document;
  return text.str();
}

draw::Chart divergence_chart(const std::string& heading, const DivergenceCurves& curves) {
  return {.heading = heading, .panels = {histogram_panel(curves), position_panel(curves)}};
}

}  // namespace kvs::inline results
