#include "export/report/tradeoff.h"

#include <algorithm>
#include <cmath>

#include "export/report/markers.h"
#include "export/report/numbers.h"

namespace kvs {
namespace {

constexpr double kLeastChange = 1e-3, kLeastDivergence = 1e-4;
constexpr double kLetterWidth = 7.6, kLetterHeight = 13;

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

std::vector<std::string> methods_of(const std::vector<TradePoint>& points) {
  std::vector<std::string> methods;
  for (const TradePoint& point : points)
    if (std::ranges::find(methods, point.method) == methods.end()) methods.push_back(point.method);
  return methods;
}

Frame frame_of(const std::vector<TradePoint>& points, double least, double width, double height) {
  double bytes = 0.5, loss = 10 * least;
  for (const TradePoint& point : points) {
    bytes = std::min(bytes, point.bytes);
    loss = std::max(loss, point.loss);
  }
  return {width,
          height,
          Axis(std::max(0.9 * bytes, 1e-4), 1.06, Axis::Scale::kHalving),
          Axis(least, 1.3 * loss, Axis::Scale::kLogarithmic),
          {.left = 72, .right = 18, .top = 34}};
}

std::string at_most(double value, double least) { return value <= least * (1 + 1e-9) ? "\u2264\u00A0" : ""; }

std::string told_point(const TradePoint& point) {
  return point.label + ": " + shown_percent(point.bytes) + " of the bytes, " + point.told;
}

/// The front from the smallest cache on.
std::vector<const TradePoint*> front_of(const std::vector<TradePoint>& points) {
  std::vector<const TradePoint*> front;
  for (const TradePoint& point : points)
    if (point.front) front.push_back(&point);
  std::ranges::sort(front, {}, &TradePoint::bytes);
  return front;
}

/// Corners of the staircase of the best loss that so many bytes buy.
std::vector<std::pair<double, double>> front_corners(const Frame& frame, const std::vector<TradePoint>& points) {
  std::vector<std::pair<double, double>> corners;
  for (const TradePoint* point : front_of(points)) {
    const double x = frame.x(point->bytes);
    if (!corners.empty()) corners.emplace_back(x, corners.back().second);
    corners.emplace_back(x, frame.y(point->loss));
  }
  if (!corners.empty()) corners.emplace_back(frame.right(), corners.back().second);
  return corners;
}

Markup front_line(const std::vector<std::pair<double, double>>& corners) {
  std::string path;
  for (const auto& [x, y] : corners) path += (path.empty() ? "M" : "L") + coordinate(x) + " " + coordinate(y);
  return element("path", {{"class", "front"}, {"d", path}});
}

/// A name beside its point where it meets nothing in `taken`, which it joins; nothing where there is no room.
Markup point_name(const Frame& frame, double x, double y, const std::string& words, std::vector<Box>& taken) {
  const double width = kLetterWidth * static_cast<double>(words.size());
  for (const double dy : {-8.0, 18.0})
    for (const bool right : {true, false}) {
      const double left = right ? x + 9 : x - 9 - width;
      const Box box{left, y + dy - kLetterHeight + 3, left + width, y + dy + 3};
      if (box.left < frame.left() || box.right > frame.right() || box.top < frame.top()) continue;
      if (box.bottom > frame.bottom()) continue;
      if (std::ranges::any_of(taken, [&](const Box& other) { return box.meets(other); })) continue;
      taken.push_back(box);
      return label(right ? x + 9 : x - 9, y + dy, words, right ? "start" : "end", "note");
    }
  return {};
}

/// Names of the front's points.
Markup front_names(const Frame& frame, const std::vector<TradePoint>& points,
                   const std::vector<std::pair<double, double>>& corners) {
  constexpr double kMark = 6;
  std::vector<Box> taken;
  for (const TradePoint& point : points) {
    const double x = frame.x(point.bytes), y = frame.y(point.loss);
    taken.push_back({x - kMark, y - kMark, x + kMark, y + kMark});
  }
  for (std::size_t n = 1; n < corners.size(); ++n) {
    const auto [left, right] = std::minmax(corners[n - 1].first, corners[n].first);
    const auto [top, bottom] = std::minmax(corners[n - 1].second, corners[n].second);
    taken.push_back({left - 1, top - 1, right + 1, bottom + 1});
  }
  Markup result;
  for (const TradePoint* point : front_of(points))
    result += point_name(frame, frame.x(point->bytes), frame.y(point->loss), point->label, taken);
  return result;
}

}  // namespace

void mark_front(std::vector<TradePoint>& points) {
  for (TradePoint& point : points)
    point.front = std::ranges::none_of(points, [&](const TradePoint& other) {
      return other.bytes <= point.bytes && other.loss <= point.loss &&
             (other.bytes < point.bytes || other.loss < point.loss);
    });
}

LossScale perplexity_scale() {
  return {"Change of perplexity", kLeastChange, [](double change) {
            const std::string bound = at_most(change, kLeastChange);
            return (bound.empty() ? "+" : bound) + shown_percent(change);
          }};
}

LossScale divergence_scale() {
  return {"KL divergence, nats a token", kLeastDivergence,
          [](double nats) { return at_most(nats, kLeastDivergence) + plain_label(nats); }};
}

Markup draw_tradeoff(const DrawingText& words, const LossScale& scale, const std::vector<TradePoint>& points,
                     double width, double height) {
  const Frame frame = frame_of(points, scale.least, width, height);
  Markup content = frame.axes(
      {.title = scale.title, .x = "bytes of the full cache", .y = "", .x_tick = percent_label, .y_tick = scale.tick}, 6,
      5);
  const auto corners = front_corners(frame, points);
  content += front_line(corners);
  const std::vector<std::string> methods = methods_of(points);
  for (const TradePoint& point : points) {
    const auto series = static_cast<std::size_t>(std::ranges::find(methods, point.method) - methods.begin());
    content += element(
        "g", {{"class", point.front ? "point" : "point beaten"}},
        element("title", told_point(point)) + marker(series, point.stored, frame.x(point.bytes), frame.y(point.loss)));
  }
  return drawing(words, width, height, content + front_names(frame, points, corners));
}

Markup tradeoff(const DrawingText& words, const LossScale& scale, const std::vector<TradePoint>& points) {
  const DrawingText narrow{words.id + "-narrow", words.title, words.description};
  return element("div", {{"class", "wide"}}, draw_tradeoff(words, scale, points, 860, 420)) +
         element("div", {{"class", "narrow"}}, draw_tradeoff(narrow, scale, points, 370, 340)) +
         legend(methods_of(points));
}

}  // namespace kvs
