// SPDX-License-Identifier: Apache-2.0
#include "draw/axes.h"

#include <algorithm>

#include "draw/numbers.h"
#include "draw/plot.h"
#include "draw/text_width.h"

namespace kvs::draw {
namespace {

constexpr double kTickLength = 4, kLetterMiddle = 0.36;  // height above the baseline, in font sizes
constexpr double kName = 12, kTitleLetters = 13;

Markup turned_label(Medium medium, double x, double y, const std::string& words) {
  if (words.empty()) return {};
  AttributeList attributes = paint(medium, "name");
  attributes.insert(
      attributes.end(),
      {{"transform", "translate(" + coordinate(x) + " " + coordinate(y) + ") rotate(-90)"}, {"text-anchor", "middle"}});
  return shape("text", attributes, text(words));
}

/// Straight lines with the same style, drawn as one path.
class Strokes {
 public:
  void across(double y, double from, double to) {
    d_ += "M" + coordinate(from) + " " + coordinate(y) + "H" + coordinate(to);
  }
  void vertical(double x, double from, double to) {
    d_ += "M" + coordinate(x) + " " + coordinate(from) + "V" + coordinate(to);
  }
  Markup markup(Medium medium, std::string_view roles) const {
    if (d_.empty()) return {};
    AttributeList attributes = paint(medium, roles);
    attributes.emplace_back("d", d_);
    return shape("path", attributes);
  }

  bool has_ticks = true;

 private:
  std::string d_;
};

Markup bottom_axis(const PlacedPanel& placed, const Layout& layout, std::string_view tick_roles, Medium medium,
                   Strokes& axes) {
  const Frame& frame = placed.frame;
  Markup result;
  for (const auto& [x, words] : placed_ticks(frame, Edge::kBottom, layout.tick_size)) {
    if (axes.has_ticks) axes.vertical(x, frame.bottom(), frame.bottom() + kTickLength);
    if (placed.x_labels) result += label(medium, x, frame.bottom() + layout.tick_size + 5, words, "middle", tick_roles);
  }
  if (placed.x_name)
    result += label(medium, frame.left + frame.width / 2,
                    frame.bottom() + (placed.x_labels ? layout.tick_size + 5 : 0) + kName + 6, frame.panel->x.name,
                    "middle", "name");
  return result;
}

Markup top_axis(const PlacedPanel& placed, const Layout& layout, Medium medium, Strokes& axes) {
  const Frame& frame = placed.frame;
  if (!frame.panel->top) return {};
  axes.across(frame.top, frame.left, frame.right());
  Markup result;
  for (const auto& [x, words] : placed_ticks(frame, Edge::kTop, layout.tick_size)) {
    axes.vertical(x, frame.top, frame.top - kTickLength);
    result += label(medium, x, frame.top - kTickLength - 4, words, "middle", "tick");
  }
  return result + label(medium, frame.left + frame.width / 2, frame.top - kTickLength - 22, frame.panel->top->name,
                        "middle", "name");
}

Markup left_axis(const PlacedPanel& placed, const Layout& layout, std::string_view tick_roles, Medium medium,
                 Strokes& axes) {
  const Frame& frame = placed.frame;
  Markup result;
  for (const auto& [y, words] : placed_ticks(frame, Edge::kLeft, layout.tick_size)) {
    if (axes.has_ticks) axes.across(y, frame.left - kTickLength, frame.left);
    if (placed.y_labels)
      result +=
          label(medium, frame.left - kTickLength - 3, y + kLetterMiddle * layout.tick_size, words, "end", tick_roles);
  }
  if (placed.y_name)
    result +=
        turned_label(medium, frame.left - placed.label_width - 14, frame.top + frame.height / 2, frame.panel->y.name);
  return result;
}

Markup title(const PlacedPanel& placed, bool dense, Medium medium) {
  const Frame& frame = placed.frame;
  const std::string& words = frame.panel->title;
  if (dense) return label(medium, frame.right() - 4, frame.top + 11, words, "end", "tick small");
  const double width = text_width(words, kTitleLetters, true), over = std::max(0.0, width - frame.width - 10);
  return label(medium, std::max(4.0, frame.left - over), frame.top - (frame.panel->top ? 48 : 9), words, "start",
               "panel");
}

/// Draws a box around maps and around panels of a large grid; other panels get two axes.
Markup outline(const Frame& frame, bool dense, Medium medium, Strokes& axes) {
  if (dense || frame.panel->cells) return rectangle(medium, frame.left, frame.top, frame.width, frame.height, "box");
  axes.across(frame.bottom(), frame.left, frame.right());
  axes.vertical(frame.left, frame.top, frame.bottom());
  return {};
}

Markup colour_bar(const ColourBar& bar, double left, double top, double height, Medium medium) {
  const std::size_t count = levels(bar.scale, medium);
  const double step = height / static_cast<double>(count);
  Markup result;
  for (std::size_t n = 0; n < count; ++n)
    result += rectangle(medium, left, top + height - step * static_cast<double>(n + 1), kBarWidth, step, "swatch",
                        at_level(bar.scale, n, medium));
  const double low = bar.scale == Colour::Scale::kDiverging ? -1 : 0;
  double labels = 0;
  std::vector<double> taken;
  std::vector<Axis::Tick> ticks = bar.ticks;
  if (!ticks.empty()) std::rotate(ticks.begin(), ticks.end() - 1, ticks.end());  // the last, the first, then the others
  for (const auto& [place, words] : ticks) {
    const double y = top + height * (1 - (place - low) / (1 - low));
    if (std::ranges::any_of(taken, [&](double other) { return std::abs(other - y) < kName; })) continue;
    labels = std::max(labels, text_width(words, kName));
    result += label(medium, left + kBarWidth + 5, y + kLetterMiddle * kName, words, "start", "tick");
    taken.push_back(y);
  }
  return result + turned_label(medium, left + kBarWidth + labels + 20, top + height / 2, bar.name);
}

}  // namespace

Markup grid(const PlacedPanel& placed, const Layout& layout, Medium medium) {
  const Frame& frame = placed.frame;
  Markup result;
  if (frame.panel->cells) return result;
  for (const auto& [from, to] : frame.panel->shades)
    result += rectangle(medium, frame.x(from), frame.top, frame.x(to) - frame.x(from), frame.height, "shade");
  Strokes lines;
  if (frame.panel->x.names.empty())
    for (const PlacedTick& tick : placed_ticks(frame, Edge::kBottom, layout.tick_size))
      lines.vertical(tick.at, frame.top, frame.bottom());
  if (frame.panel->y.names.empty())
    for (const PlacedTick& tick : placed_ticks(frame, Edge::kLeft, layout.tick_size))
      lines.across(tick.at, frame.left, frame.right());
  return result + lines.markup(medium, "grid");
}

Markup surroundings(const PlacedPanel& placed, const Layout& layout, bool dense, Medium medium) {
  const Frame& frame = placed.frame;
  const std::string_view tick_roles = dense ? "tick small" : "tick";
  Strokes axes;
  axes.has_ticks = !dense && !frame.panel->cells;
  Markup result = outline(frame, dense, medium, axes) + bottom_axis(placed, layout, tick_roles, medium, axes) +
                  top_axis(placed, layout, medium, axes) + left_axis(placed, layout, tick_roles, medium, axes) +
                  title(placed, dense, medium);
  result += axes.markup(medium, "axis");
  if (placed.bar) result += colour_bar(*frame.panel->bar, frame.right() + kBarGap, frame.top, frame.height, medium);
  return result;
}

Markup common_surroundings(const Layout& layout, Medium medium) {
  Markup result = turned_label(medium, kName + 6, (layout.top + layout.bottom) / 2, layout.common_y) +
                  label(medium, (layout.left + layout.right) / 2, layout.height - 9, layout.common_x, "middle", "name");
  if (layout.common_bar != nullptr)
    result += colour_bar(*layout.common_bar, layout.right + kBarGap, layout.top, layout.bottom - layout.top, medium);
  return result;
}

}  // namespace kvs::draw
