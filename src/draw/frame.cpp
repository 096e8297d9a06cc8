// SPDX-License-Identifier: Apache-2.0
#include "draw/frame.h"

#include <algorithm>
#include <cmath>

#include "draw/text_width.h"

namespace kvs::draw {
namespace {

/// Returns the position of a category: 0 is left or top, 1 is right or bottom. @param position  of the category
double share_of(const Side& side, double position) { return position / static_cast<double>(side.names.size()); }

/// Returns the smallest stride (in categories) at which labels that take `taken` each do not overlap.
std::size_t stride(const Side& side, double length, double taken) {
  const double room = length / static_cast<double>(side.names.size());
  std::size_t step = 1;
  for (const std::size_t candidate : {1U, 2U, 5U, 10U, 20U, 50U, 100U, 200U, 500U, 1000U}) {
    step = candidate;
    if (static_cast<double>(step) * room >= taken) break;
  }
  return step;
}

std::vector<Axis::Tick> category_ticks(const Side& side, bool vertical, double length, double size) {
  double longest = 0;
  for (const std::string& name : side.names) longest = std::max(longest, text_width(name, size));
  const std::size_t step = stride(side, length, vertical ? 1.4 * size : longest + 0.8 * size);
  std::vector<Axis::Tick> ticks;
  for (std::size_t n = 0; n < side.names.size(); n += step) ticks.push_back({static_cast<double>(n), side.names[n]});
  return ticks;
}

/// Removes labels that would overlap an earlier one in the list.
void thin_out(std::vector<PlacedTick>& ticks, bool vertical, double size) {
  double edge = HUGE_VAL, other = -HUGE_VAL;  // labels are placed after `edge` and before `other`
  for (PlacedTick& tick : ticks) {
    if (tick.label.empty()) continue;
    const double half = vertical ? 0.5 * size : 0.5 * text_width(tick.label, size), gap = vertical ? 1 : 0.4 * size;
    const bool fits = tick.at + half + gap <= edge || tick.at - half - gap >= other;
    if (!fits) {
      tick.label.clear();
      continue;
    }
    edge = std::min(edge, tick.at - half);
    other = std::max(other, tick.at + half);
  }
}

}  // namespace

double Frame::x(double value) const noexcept {
  const Side& side = panel->x;
  return left + width * (side.names.empty() ? side.axis.place(value) : share_of(side, value));
}

double Frame::y(double value) const noexcept {
  const Side& side = panel->y;
  return top + height * (side.names.empty() ? 1 - side.axis.place(value) : share_of(side, value));
}

std::vector<PlacedTick> placed_ticks(const Frame& frame, Edge edge, double size) {
  const Side& side = edge == Edge::kTop ? *frame.panel->top : edge == Edge::kBottom ? frame.panel->x : frame.panel->y;
  const bool vertical = edge == Edge::kLeft, categories = !side.names.empty();
  std::vector<Axis::Tick> ticks = side.ticks;
  if (ticks.empty())
    ticks = categories ? category_ticks(side, vertical, vertical ? frame.height : frame.width, size)
                       : side.axis.ticks(side.most, side.label);
  std::vector<PlacedTick> placed;
  for (auto& [value, label] : ticks) {
    const double share = categories ? share_of(side, value + 0.5)
                         : vertical ? 1 - side.axis.place(value)
                                    : side.axis.place(value);
    placed.push_back({vertical ? frame.top + share * frame.height : frame.left + share * frame.width, label});
  }
  if (!categories) std::ranges::reverse(placed);  // keeps labels at the high end of a long axis
  thin_out(placed, vertical, size);
  return placed;
}

double widest(const std::vector<PlacedTick>& ticks, double size) {
  double most = 0;
  for (const PlacedTick& tick : ticks) most = std::max(most, text_width(tick.label, size));
  return most;
}

}  // namespace kvs::draw
