// SPDX-License-Identifier: Apache-2.0
#include "results/pareto_chart.h"

#include <algorithm>
#include <cmath>

#include "draw/numbers.h"

namespace kvs::inline results {
namespace {

constexpr double kMinChange = 1e-3, kMinDivergence = 1e-5;

std::string at_most(double value, double least) { return value <= least * (1 + 1e-9) ? "\u2264\u00A0" : ""; }

draw::Side bytes_side(const std::vector<TradePoint>& points) {
  double least = 0.5;
  for (const TradePoint& point : points) least = std::min(least, point.bytes);
  draw::Side side{.axis = {std::max(0.85 * least, 1e-4), 1.06, draw::Axis::Scale::kLogarithmic},
                  .name = "bytes, share of the full cache (2 bytes a value)"};
  for (double power = 1e-4; power < 1; power *= 10)
    for (const double factor : {1.0, 1.5, 2.0, 3.0, 5.0, 7.5})
      if (const double share = factor * power; share >= side.axis.low())
        side.ticks.push_back({share, draw::percent_label(share)});
  side.ticks.push_back({1, draw::percent_label(1)});
  return side;
}

/// Returns an axis of at least one decade from slightly below the smallest loss, but not below the scale's lower end.
draw::Axis loss_axis(const std::vector<TradePoint>& points, const LossScale& scale) {
  double low = HUGE_VAL, high = 0;
  for (const TradePoint& point : points) {
    low = std::min(low, point.loss);
    high = std::max(high, point.loss);
  }
  low = low > scale.least ? std::max(scale.least, low / 2) : scale.least;
  return {low, std::max(1.5 * high, 10 * low), draw::Axis::Scale::kLogarithmic};
}

/// Returns the front in ascending order of bytes.
std::vector<TradePoint> pareto_front_of(const std::vector<TradePoint>& points) {
  std::vector<TradePoint> front;
  for (const TradePoint& point : points)
    if (point.pareto_front) front.push_back(point);
  std::ranges::stable_sort(front, {}, &TradePoint::bytes);
  return front;
}

std::vector<std::string> drawn_methods(const std::vector<TradePoint>& points, std::span<const std::string> order) {
  std::vector<std::string> methods(order.begin(), order.end());
  for (const TradePoint& point : points)
    if (std::ranges::find(methods, point.method) == methods.end()) methods.push_back(point.method);
  return methods;
}

draw::Series method_series(const std::vector<TradePoint>& points, const std::string& method, std::size_t number,
                           double low) {
  draw::Series series{
      .name = method, .look = draw::series_look(number), .points = {}, .join = draw::Series::Join::kNone, .mark = 4.2};
  for (const TradePoint& point : points)
    if (point.method == method)
      series.points.push_back(
          {.x = point.bytes,
           .y = std::max(point.loss, low),
           .tooltip = point.label + ": " + draw::shown_percent(point.bytes) + " of the bytes, " + point.tooltip,
           .hollow = point.stored,
           .faded = !point.pareto_front});
  return series;
}

}  // namespace

LossScale perplexity_scale() {
  return {"change of perplexity", kMinChange, [](double change) {
            const std::string bound = at_most(change, kMinChange);
            return (bound.empty() ? "+" : bound) + draw::shown_percent(change);
          }};
}

LossScale divergence_scale() {
  return {"KL divergence from the full cache, nats a token", kMinDivergence,
          [](double nats) { return at_most(nats, kMinDivergence) + draw::plain_label(nats); }};
}

void mark_pareto_front(std::vector<TradePoint>& points) {
  for (TradePoint& point : points)
    point.pareto_front = std::ranges::none_of(points, [&](const TradePoint& other) {
      return other.bytes <= point.bytes && other.loss <= point.loss &&
             (other.bytes < point.bytes || other.loss < point.loss);
    });
}

draw::Chart pareto_chart(const std::string& heading, const std::string& description, const LossScale& scale,
                         const std::vector<TradePoint>& points, std::span<const std::string> methods) {
  draw::Panel panel{.key = "",
                    .title = "",
                    .description = description,
                    .x = bytes_side(points),
                    .y = {.axis = loss_axis(points, scale), .name = scale.title, .label = scale.tick, .most = 7}};
  draw::Series front{.name = "front", .points = {}, .join = draw::Series::Join::kSteps, .mark = 0};
  for (const TradePoint& point : pareto_front_of(points)) {
    front.points.push_back({point.bytes, std::max(point.loss, panel.y.axis.low())});
    panel.notes.push_back({point.bytes, std::max(point.loss, panel.y.axis.low()), point.label});
  }
  const std::vector<std::string> drawn = drawn_methods(points, methods);
  for (std::size_t n = 0; n < drawn.size(); ++n)
    if (draw::Series series = method_series(points, drawn[n], n, panel.y.axis.low()); !series.points.empty())
      panel.series.push_back(std::move(series));
  panel.series.push_back(std::move(front));
  if (std::ranges::any_of(points, &TradePoint::stored))
    panel.legend.push_back({.name = "rows in a storage type", .kind = draw::LegendEntry::Kind::kMark, .hollow = true});
  return {.heading = heading, .panels = {std::move(panel)}, .plot_width = 680, .plot_height = 380};
}

}  // namespace kvs::inline results
