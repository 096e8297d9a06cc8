// SPDX-License-Identifier: Apache-2.0
#include "draw/layout.h"

#include <algorithm>
#include <cmath>

#include "draw/text_width.h"

namespace kvs::draw {
namespace {

constexpr double kTick = 12, kDenseTick = 9;  // font sizes
constexpr double kTitle = 13;
constexpr double kNameRoom = 20;  // of the name of an axis
constexpr double kMargin = 14;    // around the drawing and between panels
constexpr double kTitleRoom = 24, kTopAxisRoom = 38;
constexpr double kGroupGap = 12;

struct Room {
  double left = 0, right = 0, top = 0, bottom = 0;
};

template <class Of>
bool all_alike(const Chart& chart, Of of) {
  return std::ranges::all_of(chart.panels, [&](const Panel& panel) { return of(panel) == of(chart.panels.front()); });
}

const Panel* panel_at(const Chart& chart, std::size_t row, std::size_t column) {
  for (const Panel& panel : chart.panels)
    if (panel.row == row && panel.column == column) return &panel;
  return nullptr;
}

/// Decides which labels and names the panel shows and which a neighbour shows for it.
PlacedPanel placed_panel(const Chart& chart, const Panel& panel, const Layout& layout) {
  PlacedPanel placed;
  placed.frame.panel = &panel;
  const bool first_of_group = chart.group > 0 && panel.column % chart.group == 0;
  const Panel* left = panel.column > 0 && !first_of_group ? panel_at(chart, panel.row, panel.column - 1) : nullptr;
  const Panel* below = panel_at(chart, panel.row + 1, panel.column);
  placed.y_labels = left == nullptr || !(left->y == panel.y);
  placed.x_labels = below == nullptr || !(below->x == panel.x);
  placed.y_name = layout.common_y.empty() && (left == nullptr || left->y.name != panel.y.name) && !panel.y.name.empty();
  placed.x_name =
      layout.common_x.empty() && (below == nullptr || below->x.name != panel.x.name) && !panel.x.name.empty();
  placed.bar = panel.bar && layout.common_bar == nullptr;
  return placed;
}

double bar_room(const ColourBar& bar) {
  double labels = 0;
  for (const Axis::Tick& tick : bar.ticks) labels = std::max(labels, text_width(tick.label, kTick));
  return kBarGap + kBarWidth + 7 + labels + (bar.name.empty() ? 0 : kNameRoom);
}

/// Makes room for labels of the lower axis and a title that are wider than the panel.
void make_room_for_labels(const PlacedPanel& placed, double tick_size, Room& room) {
  constexpr double kBesideLabels = 7;
  const Frame& frame = placed.frame;
  if (placed.x_labels)
    for (const auto& [x, words] : placed_ticks(frame, Edge::kBottom, tick_size)) {
      if (words.empty()) continue;
      const double half = text_width(words, tick_size) / 2;
      room.left = std::max(room.left, half - x + kBesideLabels);
      room.right = std::max(room.right, x + half - frame.width + kBesideLabels);
    }
  room.right = std::max(room.right, text_width(frame.panel->title, kTitle, true) - frame.width + kBesideLabels);
}

Room room_of(const Chart& chart, PlacedPanel& placed, double tick_size) {
  const Panel& panel = *placed.frame.panel;
  Room room;
  if (placed.y_labels) {
    placed.label_width = widest(placed_ticks(placed.frame, Edge::kLeft, tick_size), tick_size);
    room.left = placed.label_width + 8;
  }
  room.right = placed.bar ? bar_room(*panel.bar) : chart.dense ? 1 : kMargin;
  if (!chart.dense) make_room_for_labels(placed, tick_size, room);
  if (placed.y_name) room.left += kNameRoom;
  room.top = (panel.title.empty() || chart.dense ? (chart.dense ? 1 : 8) : kTitleRoom) + (panel.top ? kTopAxisRoom : 0);
  room.bottom = (placed.x_labels ? tick_size + 7 : chart.dense ? 1 : 4) + (placed.x_name ? kNameRoom : 0);
  return room;
}

/// Returns the maximum need over the panels of each row (or column).
template <class Index, class Need>
std::vector<double> most(const std::vector<PlacedPanel>& panels, const std::vector<Room>& rooms, Index index,
                         Need need) {
  std::vector<double> result;
  for (std::size_t n = 0; n < panels.size(); ++n) {
    const std::size_t at = index(*panels[n].frame.panel);
    if (result.size() <= at) result.resize(at + 1);
    result[at] = std::max(result[at], need(rooms[n]));
  }
  return result;
}

/// Sets the rectangle of every frame.
void place(Layout& layout, const Chart& chart, const std::vector<Room>& rooms, std::optional<double> width) {
  const auto row = [](const Panel& panel) { return panel.row; };
  const auto column = [](const Panel& panel) { return panel.column; };
  const auto lefts = most(layout.panels, rooms, column, [](const Room&room) { return room.left; }),
             rights = most(layout.panels, rooms, column, [](const Room&room) { return room.right; }),
             tops = most(layout.panels, rooms, row, [](const Room&room) { return room.top; }),
             bottoms = most(layout.panels, rooms, row, [](const Room&room) { return room.bottom; });
  const double outer_left = kMargin + (layout.common_y.empty() ? 0 : kNameRoom),
               outer_right = layout.common_bar == nullptr ? 2 : bar_room(*layout.common_bar) - kMargin + 4;
  double around = outer_left + outer_right;
  for (std::size_t n = 0; n < lefts.size(); ++n) around += lefts[n] + rights[n];
  const std::size_t gaps = chart.group > 0 ? (lefts.size() - 1) / chart.group : 0;
  around += kGroupGap * static_cast<double>(gaps);
  const auto columns = static_cast<double>(lefts.size());
  const double plot_width = width ? std::max(40.0, (*width - around) / columns) : chart.plot_width;
  std::vector<double> x, y;
  double at = outer_left;
  for (std::size_t n = 0; n < lefts.size(); ++n) {
    if (chart.group > 0 && n > 0 && n % chart.group == 0) at += kGroupGap;
    x.push_back(at + lefts[n]);
    at = x.back() + plot_width + rights[n];
  }
  layout.width = std::ceil(at + outer_right);
  at = layout.top;
  for (std::size_t n = 0; n < tops.size(); ++n) {
    y.push_back(at + tops[n]);
    at = y.back() + chart.plot_height + bottoms[n];
  }
  layout.height = std::ceil(at + (layout.common_x.empty() ? 0 : kNameRoom) + 6);
  for (PlacedPanel& placed : layout.panels) {
    Frame& frame = placed.frame;
    frame = {x[frame.panel->column], y[frame.panel->row], plot_width, chart.plot_height, frame.panel};
  }
  layout.left = x.front();
  layout.right = x.back() + plot_width;
  layout.top = y.front();
  layout.bottom = y.back() + chart.plot_height;
}

}  // namespace

Layout layout_of(const Chart& chart, double above, std::optional<double> width) {
  Layout layout;
  layout.tick_size = chart.dense ? kDenseTick : kTick;
  layout.top = above;
  const Panel& first = chart.panels.front();
  if (all_alike(chart, [](const Panel& panel) { return panel.x.name; })) layout.common_x = first.x.name;
  if (all_alike(chart, [](const Panel& panel) { return panel.y.name; })) layout.common_y = first.y.name;
  if (first.bar && all_alike(chart, [](const Panel& panel) { return panel.bar; })) layout.common_bar = &*first.bar;
  std::vector<Room> rooms;
  for (const Panel& panel : chart.panels) {
    PlacedPanel placed = placed_panel(chart, panel, layout);
    placed.frame.width = width ? std::max(40.0, *width - 80) : chart.plot_width;
    placed.frame.height = chart.plot_height;
    rooms.push_back(room_of(chart, placed, layout.tick_size));
    layout.panels.push_back(placed);
  }
  place(layout, chart, rooms, width);
  return layout;
}

}  // namespace kvs::draw
