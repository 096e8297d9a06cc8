// SPDX-License-Identifier: Apache-2.0
#include "draw/chart.h"

#include <algorithm>
#include <cmath>

namespace kvs::draw {

void arrange(Chart& chart, std::size_t columns) {
  for (std::size_t n = 0; n < chart.panels.size(); ++n) {
    chart.panels[n].row = n / columns;
    chart.panels[n].column = n % columns;
  }
}

std::vector<LegendEntry> legend_of(const Chart& chart) {
  using Kind = LegendEntry::Kind;
  std::vector<LegendEntry> entries;
  const auto add = [&](LegendEntry entry) {
    if (!entry.name.empty() && std::ranges::find(entries, entry) == entries.end()) entries.push_back(std::move(entry));
  };
  for (const Panel& panel : chart.panels) {
    for (const Series& series : panel.series) {
      const Kind kind = series.join == Series::Join::kSteps  ? Kind::kSteps
                        : series.join == Series::Join::kNone ? Kind::kMark
                                                             : Kind::kLine;
      add({series.name, kind, series.look, kind == Kind::kLine && series.mark > 0});
    }
    for (const Bars& bars : panel.bars) add({bars.name, Kind::kBar, {bars.colour, 0}});
    for (const Rule& rule : panel.rules) add({rule.name, Kind::kRule, {rule.colour, 0}});
    for (const LegendEntry& entry : panel.legend) add(entry);
  }
  return entries;
}

std::vector<std::string> counted_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t n = 0; n < count; ++n) names.push_back(std::to_string(n));
  return names;
}

std::vector<std::string> number_names(const std::vector<std::size_t>& numbers) {
  std::vector<std::string> names;
  names.reserve(numbers.size());
  for (const std::size_t number : numbers) names.push_back(std::to_string(number));
  return names;
}

Side decade_side(int low, int high) {
  Side side{.axis = Axis(std::pow(10.0, low), std::pow(10.0, high), Axis::Scale::kLogarithmic)};
  side.ticks.reserve(static_cast<std::size_t>(high - low + 1));
  for (int exponent = low; exponent <= high; ++exponent)
    side.ticks.push_back({std::pow(10.0, exponent), decade_label(std::pow(10.0, exponent))});
  return side;
}

ColourBar share_bar(const std::string& name) { return value_bar(name, 0, 1, 5, percent_label); }

ColourBar value_bar(const std::string& name, double low, double high, std::size_t most, Axis::Label label) {
  ColourBar bar{Colour::Scale::kSequential, name, {}};
  const Axis axis(low, high);
  for (auto& [value, words] : axis.ticks(most, label)) bar.ticks.push_back({axis.place(value), std::move(words)});
  return bar;
}

}  // namespace kvs::draw
