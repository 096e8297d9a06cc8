// SPDX-License-Identifier: Apache-2.0
#include "draw/plot.h"

#include <algorithm>
#include <cmath>

#include "draw/cells.h"
#include "draw/notes.h"
#include "draw/numbers.h"

namespace kvs::draw {
namespace {

/// Returns an element that shows its text on hover in a page, and a plain group in a file.
Markup tooltip_group(Medium medium, const std::string& tooltip, std::string_view roles, const Markup& content) {
  if (medium == Medium::kFile) return shape("g", paint(medium, roles), content);
  return shape("g", {{"class", "point" + std::string(roles.empty() ? "" : " ") + std::string(roles)}},
               (tooltip.empty() ? Markup() : element("title", tooltip)) + content);
}

Markup path(Medium medium, const std::string& d, std::string_view roles, Colour colour,
            const std::string& tooltip = "") {
  if (d.empty()) return {};
  AttributeList attributes = paint(medium, roles, colour);
  attributes.emplace_back("d", d);
  return shape("path", attributes, tooltip.empty() || medium == Medium::kFile ? Markup() : element("title", tooltip));
}

bool is_drawn(const Frame& frame, const Point& point) {
  const Panel& panel = *frame.panel;
  const auto has_place = [](const Axis& axis, double value) {
    return std::isfinite(value) && (value > 0 || !axis.is_logarithmic());
  };
  return has_place(panel.x.axis, point.x) && has_place(panel.y.axis, point.y);
}

std::string at(double x, double y) { return coordinate(x) + " " + coordinate(y); }

std::string line_path(const Frame& frame, const Series& series) {
  std::string d;
  bool pen_down = false;
  for (const Point& point : series.points) {
    const bool drawn = is_drawn(frame, point);
    if (drawn) d += (pen_down ? "L" : "M") + at(frame.x(point.x), frame.y(point.y));
    pen_down = drawn;
  }
  return d;
}

/// Returns the step line of the points, continued to the panel's right edge.
std::string steps_path(const Frame& frame, const Series& series) {
  std::string d;
  bool pen_down = false;
  for (const Point& point : series.points) {
    const bool drawn = is_drawn(frame, point);
    if (drawn)
      d += pen_down ? "H" + coordinate(frame.x(point.x)) + "V" + coordinate(frame.y(point.y))
                    : "M" + at(frame.x(point.x), frame.y(point.y));
    pen_down = drawn;
  }
  return pen_down ? d + "H" + coordinate(frame.right()) : d;
}

/// Returns the area between the ends of the intervals, one piece for each run of points that have an interval.
std::string band_path(const Frame& frame, const Series& series) {
  std::string d, lower, upper;
  const auto close = [&] {
    if (!upper.empty()) d += "M" + upper.substr(1) + lower + "z";
    lower.clear();
    upper.clear();
  };
  for (const Point& point : series.points) {
    if (!point.interval || !is_drawn(frame, point)) {
      close();
      continue;
    }
    upper += "L" + at(frame.x(point.x), frame.y(point.interval->second));
    lower.insert(0, "L" + at(frame.x(point.x), frame.y(point.interval->first)));
  }
  close();
  return d;
}

Markup whisker(const Frame& frame, Medium medium, const Series& series, const Point& point) {
  if (!point.interval || series.spread != Series::Spread::kAcross) return {};
  const auto [low, high] = *point.interval;
  return line(medium, frame.x(low), frame.y(point.y), frame.x(high), frame.y(point.y), "whisker", series.look.colour);
}

Markup marks(const Frame& frame, Medium medium, const Series& series) {
  Markup result;
  for (const Point& point : series.points) {
    if (series.mark <= 0 || !is_drawn(frame, point)) continue;
    const Markup mark = marker(medium, series.look.form, series.look.colour, frame.x(point.x), frame.y(point.y),
                               series.mark, point.hollow ? "hollow" : "");
    const Markup spread = whisker(frame, medium, series, point);
    if (medium == Medium::kFile && !point.faded)
      result += spread + mark;
    else
      result += tooltip_group(medium, point.tooltip, point.faded ? "beaten" : "", spread + mark);
  }
  return result;
}

Markup bar_shapes(const Frame& frame, Medium medium, const Bars& bars) {
  Markup result;
  for (const auto& [left, right, low, high, tooltip] : bars.bars) {
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const double top = std::min(frame.y(low), frame.y(high)), height = std::abs(frame.y(high) - frame.y(low));
    const Markup bar =
        rectangle(medium, frame.x(left), top, frame.x(right) - frame.x(left), height, "bar", bars.colour);
    result += medium == Medium::kFile ? bar : tooltip_group(medium, tooltip, "", bar);
  }
  return result;
}

Markup rule_line(const Frame& frame, Medium medium, const Rule& rule) {
  const double x = frame.x(rule.at), y = frame.y(rule.at);
  return rule.vertical ? line(medium, x, frame.top, x, frame.bottom(), "zero", rule.colour)
                       : line(medium, frame.left, y, frame.right(), y, "zero", rule.colour);
}

std::string curve_roles(const Series& series) {
  return series.join == Series::Join::kSteps ? "front" : series.thin ? "curve thin" : "curve";
}

}  // namespace

Markup label(Medium medium, double x, double y, const std::string& words, const std::string& anchor,
             std::string_view roles) {
  if (words.empty()) return {};
  AttributeList attributes = paint(medium, roles);
  attributes.insert(attributes.end(), {{"x", coordinate(x)}, {"y", coordinate(y)}});
  if (anchor != "start") attributes.emplace_back("text-anchor", anchor);
  return shape("text", attributes, text(words));
}

Markup line(Medium medium, double x1, double y1, double x2, double y2, std::string_view roles, Colour colour) {
  AttributeList attributes = paint(medium, roles, colour);
  attributes.insert(attributes.end(),
                    {{"x1", coordinate(x1)}, {"y1", coordinate(y1)}, {"x2", coordinate(x2)}, {"y2", coordinate(y2)}});
  return shape("line", attributes);
}

Markup rectangle(Medium medium, double x, double y, double width, double height, std::string_view roles,
                 Colour colour) {
  AttributeList attributes = paint(medium, roles, colour);
  attributes.insert(
      attributes.end(),
      {{"x", coordinate(x)}, {"y", coordinate(y)}, {"width", coordinate(width)}, {"height", coordinate(height)}});
  return shape("rect", attributes);
}

Markup plot(const Frame& frame, Medium medium) {
  const Panel& panel = *frame.panel;
  Markup result;
  if (panel.cells) result += cell_shapes(frame, medium);
  for (const Bars& bars : panel.bars) result += bar_shapes(frame, medium, bars);
  for (const Series& series : panel.series)
    if (series.spread == Series::Spread::kBand)
      result += path(medium, band_path(frame, series), "spread", series.look.colour);
  for (const Rule& rule : panel.rules) result += rule_line(frame, medium, rule);
  for (const Series& series : panel.series)
    if (series.join != Series::Join::kNone)
      result += path(medium, series.join == Series::Join::kSteps ? steps_path(frame, series) : line_path(frame, series),
                     curve_roles(series), series.look.colour, series.tooltip);
  for (const Series& series : panel.series) result += marks(frame, medium, series);
  return result + note_texts(frame, medium);
}

}  // namespace kvs::draw
