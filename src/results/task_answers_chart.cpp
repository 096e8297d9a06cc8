// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "draw/numbers.h"
#include "results/panels.h"
#include "results/task_answers.h"

namespace kvs::inline results {
namespace {

using Places = std::vector<std::vector<std::vector<const Answer*>>>;  // [depth][length]: the answers

/// The depths and lengths of the questions; empty if a question has no depth or length.
struct QuestionGrid {
  explicit QuestionGrid(std::span<const TaskResult> results) {
    std::set<double> all_depths;
    std::set<std::size_t> all_lengths;
    for (const TaskResult& result : results) {
      if (!result.depth || !result.length) return;
      all_depths.insert(*result.depth);
      all_lengths.insert(*result.length);
    }
    depths.assign(all_depths.begin(), all_depths.end());
    lengths.assign(all_lengths.begin(), all_lengths.end());
  }
  /// Groups the answers by depth and length.
  /// @param answer  returns the answer of a result, or nullptr to skip the result
  template <class Pick>
  Places places(std::span<const TaskResult> results, Pick answer) const {
    Places places(depths.size(), std::vector<std::vector<const Answer*>>(lengths.size()));
    for (const TaskResult& result : results) {
      const auto row = std::ranges::lower_bound(depths, *result.depth) - depths.begin();
      const auto column = std::ranges::lower_bound(lengths, *result.length) - lengths.begin();
      if (const Answer* found = answer(result))
        places[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)].push_back(found);
    }
    return places;
  }
  MapNames names() const {
    MapNames names{"depth", "tokens", {}, {}, "", ""};
    for (const double depth : depths) names.rows.push_back(draw::shown_percent(depth));
    for (const std::size_t length : lengths) names.columns.push_back(draw::shown_count(length));
    return names;
  }

  std::vector<double> depths;
  std::vector<std::size_t> lengths;
};

/// Returns a map of `value` over the answers at each depth and length.
/// @param tooltip  returns a cell's value in words; called only for cells with answers
template <class Value, class Tooltip>
draw::Panel answers_panel(const std::string& key, const std::string& title, const MapNames& names,
                          const draw::ColourBar& bar, const Places& places, Value value, Tooltip tooltip) {
  std::vector<std::vector<double>> values;
  std::vector<std::vector<std::string>> words;
  for (const auto& row : places) {
    values.emplace_back();
    words.emplace_back();
    for (const auto& answers : row) {
      values.back().push_back(answers.empty() ? draw::kNoValue : value(answers));
      words.back().push_back(answers.empty() ? "not asked" : tooltip(answers));
    }
  }
  return map_panel(key, title, title + ", by depth and length of the text.", names, bar, std::move(values),
                   std::move(words));
}

double mean_partial(const std::vector<const Answer*>& answers) {
  double sum = 0;
  for (const Answer* answer : answers) sum += answer->scores.partial;
  return sum / static_cast<double>(answers.size());
}

double mean_likelihood(const std::vector<const Answer*>& answers) {
  double sum = 0, tokens = 0;
  for (const Answer* answer : answers) {
    sum += answer->log_likelihood;
    tokens += static_cast<double>(answer->tokens);
  }
  return sum / tokens;
}

draw::Panel share_panel(const std::string& key, const std::string& title, const MapNames& names, const Places& places) {
  return answers_panel(key, title, names, draw::share_bar(""), places, mean_partial, [](const auto& answers) {
    return draw::shown_percent(mean_partial(answers)) + " of the answer, " + draw::counted(answers.size(), "question");
  });
}

draw::Panel likelihood_panel(const MapNames& names, const Places& places) {
  double least = 0;
  for (const auto& row : places)
    for (const auto& answers : row)
      if (!answers.empty()) least = std::min(least, mean_likelihood(answers));
  if (least == 0) least = -1;
  return answers_panel(
      "likelihood", "log-likelihood a token", names, draw::value_bar("", least, 0), places,
      [&](const auto& answers) { return 1 - mean_likelihood(answers) / least; },
      [](const auto& answers) { return draw::shown(mean_likelihood(answers)); });
}

}  // namespace

draw::Chart retrieval_chart(const std::string& heading, std::span<const TaskResult> results) {
  const QuestionGrid grid(results);
  draw::Chart chart{.heading = heading,
                    .panels = {},
                    .plot_width = std::clamp(46.0 * static_cast<double>(grid.lengths.size()), 170.0, 460.0),
                    .plot_height = std::clamp(26.0 * static_cast<double>(grid.depths.size()), 90.0, 420.0)};
  if (grid.depths.empty()) return chart;
  const MapNames names = grid.names();
  const Places places = grid.places(results, [](const TaskResult& result) { return &result.answer; });
  chart.panels = {share_panel("score", "share found", names, places), likelihood_panel(names, places)};
  if (std::ranges::all_of(results, [](const TaskResult& result) { return result.full.has_value(); }))
    chart.panels.push_back(share_panel("full", "share found, full cache", names,
                                       grid.places(results, [](const auto& result) { return &*result.full; })));
  draw::arrange(chart, chart.panels.size());
  return chart;
}

}  // namespace kvs::inline results
