// SPDX-License-Identifier: Apache-2.0
#include "results/panels.h"

#include <algorithm>
#include <cmath>

#include "draw/numbers.h"

namespace kvs::inline results {
namespace {

/// Returns an axis that covers zero and all intervals. Cuts wide intervals at `kCut` times the largest value, because
/// they would squeeze the other rows.
draw::Axis change_axis(const std::vector<IntervalRow>& rows) {
  constexpr double kCut = 2.5;
  double low = 0, high = 0, largest = 0;
  for (const IntervalRow& row : rows) largest = std::max(largest, std::abs(row.value));
  for (const IntervalRow& row : rows) {
    const auto [least, most] = row.interval.value_or(std::pair(row.value, row.value));
    low = std::max(std::min(low, least), -kCut * largest);
    high = std::min(std::max(high, most), kCut * largest);
  }
  return draw::Axis::rounded(low, high, 5);
}

}  // namespace

draw::Panel map_panel(const std::string& key, const std::string& title, const std::string& description,
                      const MapNames& names, const draw::ColourBar& bar, std::vector<std::vector<double>> places,
                      std::vector<std::vector<std::string>> tooltip) {
  draw::Panel panel{.key = key, .title = title, .description = description, .x = {}, .y = {}, .bar = bar};
  panel.x.name = names.x_name.empty() ? names.column_word : names.x_name;
  panel.x.names = names.columns;
  panel.y.name = names.y_name.empty() ? names.row_word : names.y_name;
  panel.y.names = names.rows;
  panel.cells =
      draw::Cells{std::move(places), std::move(tooltip), names.rows, names.columns, names.row_word, names.column_word};
  return panel;
}

double map_height(std::size_t rows) { return std::clamp(11.0 * static_cast<double>(rows), 90.0, 460.0); }
double map_width(std::size_t columns) { return std::clamp(13.0 * static_cast<double>(columns), 150.0, 420.0); }

std::string interval_words(const draw::Interval& interval) {
  return interval ? " (95\u00A0%: " + draw::shown(interval->first) + " to " + draw::shown(interval->second) + ")" : "";
}

draw::Panel interval_panel(const std::string& key, const std::string& title, const std::string& description,
                           const std::string& x_name, const std::vector<IntervalRow>& rows) {
  draw::Panel panel{.key = key,
                    .title = title,
                    .description = description,
                    .x = {.axis = change_axis(rows), .name = x_name, .label = draw::percent_label, .most = 4},
                    .y = {}};
  draw::Series series{.name = "",
                      .look = draw::series_look(0),
                      .points = {},
                      .join = draw::Series::Join::kNone,
                      .spread = draw::Series::Spread::kAcross};
  for (const IntervalRow& row : rows) {
    panel.y.names.push_back(row.name);
    series.points.push_back({.x = row.value,
                             .y = static_cast<double>(series.points.size()) + 0.5,
                             .interval = row.interval,
                             .tooltip = row.name + ": " + row.tooltip});
  }
  panel.series.push_back(std::move(series));
  panel.rules.push_back({.at = 0, .vertical = true});
  return panel;
}

double interval_height(std::size_t rows) { return 17 * static_cast<double>(rows); }

}  // namespace kvs::inline results
