// SPDX-License-Identifier: Apache-2.0
#include "results/token_scores.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "draw/numbers.h"
#include "results/panels.h"

namespace kvs::inline results {
namespace {

using Rows = std::vector<std::vector<double>>;

/// Two maps with equal rows and columns.
struct TokenMap {
  std::vector<std::string> rows, columns;  // columns: the first token of each column
  std::vector<draw::Axis::Tick> ticks;     // rows that are labelled with a layer; empty: all rows
  std::size_t width = 1;                   // tokens per column
  Rows score, kept;                        // largest relative score; share of kept tokens
};

/// Returns the largest score of one head in each column.
std::vector<double> largest_scores(const std::vector<double>& scores, std::size_t width) {
  std::vector<double> largest;
  for (std::size_t first = 0; first < scores.size(); first += width) {
    const auto from = scores.begin() + static_cast<std::ptrdiff_t>(first);
    largest.push_back(
        *std::max_element(from, from + static_cast<std::ptrdiff_t>(std::min(width, scores.size() - first))));
  }
  return largest;
}

std::vector<double> kept_shares(const std::vector<std::size_t>& kept, const TokenScoresResult& result,
                                std::size_t width) {
  std::vector<double> shares((result.tokens_scored + width - 1) / width);
  for (const std::size_t position : kept) {
    const std::size_t column = (position - result.first_token) / width;
    shares[column] += 1 / static_cast<double>(std::min(width, result.tokens_scored - column * width));
  }
  return shares;
}

void add_mean(std::vector<double>& mean, const std::vector<double>& row, std::size_t rows) {
  mean.resize(row.size());
  for (std::size_t n = 0; n < row.size(); ++n) mean[n] += row[n] / static_cast<double>(rows);
}

TokenMap token_map(const TokenScoresResult& result, bool by_head) {
  constexpr std::size_t kMaxColumns = 64;
  TokenMap map;
  map.width = (result.tokens_scored + kMaxColumns - 1) / kMaxColumns;
  for (std::size_t token = 0; token < result.tokens_scored; token += map.width)
    map.columns.push_back(draw::shown_count(result.first_token + token));
  const std::size_t step = result.layers.size() > 10 ? 5 : 1;  // with many layers, a tick at every fifth layer
  for (std::size_t layer = 0; layer < result.layers.size(); ++layer) {
    const std::string name = std::to_string(result.layers[layer]);
    const std::size_t heads = result.kept[layer].size();
    if (by_head && layer % step == 0)
      map.ticks.push_back({static_cast<double>(map.rows.size()) + 0.5 * static_cast<double>(heads - 1), name});
    for (std::size_t head = 0; head < heads; ++head) {
      if (by_head || head == 0) {
        map.rows.push_back(by_head ? name + ", head " + std::to_string(head) : name);
        map.score.emplace_back();
        map.kept.emplace_back();
      }
      const std::size_t rows = by_head ? 1 : heads;
      add_mean(map.score.back(), largest_scores(result.relative_score[layer][head], map.width), rows);
      add_mean(map.kept.back(), kept_shares(result.kept[layer][head], result, map.width), rows);
    }
  }
  return map;
}

/// Returns the ends of the colour scale. The upper end is a quantile, so that a single token does not determine the
/// upper end.
std::pair<double, double> score_range(const Rows& score) {
  constexpr double kScale = 0.995;  // share of the cells within the scale
  std::vector<double> sorted;
  for (const auto& row : score) sorted.insert(sorted.end(), row.begin(), row.end());
  std::ranges::sort(sorted);
  const double low = sorted.front();
  return {low, std::max(sorted[static_cast<std::size_t>(kScale * static_cast<double>(sorted.size() - 1))], low + 1e-3)};
}

template <class Words>
std::vector<std::vector<std::string>> tooltips(const Rows& rows, const Words& words) {
  std::vector<std::vector<std::string>> tooltips;
  for (const auto& row : rows) std::ranges::transform(row, std::back_inserter(tooltips.emplace_back()), words);
  return tooltips;
}

draw::Panel token_panel(const std::string& key, const std::string& title, const TokenScoresResult& result,
                        const TokenMap& map, const draw::ColourBar& bar, Rows places,
                        std::vector<std::vector<std::string>> words) {
  const MapNames names{"layer",     "token", map.rows,
                       map.columns, "token", map.ticks.empty() ? "layer" : "layer (its KV heads below each other)"};
  draw::Panel panel =
      map_panel(key, title, title + ", by layer and token.", names, bar, std::move(places), std::move(words));
  panel.x.names.clear();
  panel.x.axis = {static_cast<double>(result.first_token),
                  static_cast<double>(result.first_token + map.columns.size() * map.width)};
  panel.x.most = 10;
  panel.y.ticks = map.ticks;
  return panel;
}

}  // namespace

void TokenScoresResult::check(const TokenScoresResult& of, const JsonCursor& json) {
  constexpr std::size_t kMaxTokens = 1 << 24;
  const auto check_length = [](const JsonCursor& list, std::size_t length, const char* of_what) {
    if (list.array_size() != length) list.fail(std::to_string(length) + " " + of_what);
  };
  for (const auto& [name, value] : {std::pair("tokens_scored", of.tokens_scored), {"first_token", of.first_token}})
    if (value > kMaxTokens) json.at(name).fail("at most " + std::to_string(kMaxTokens));
  if (of.tokens_scored == 0) json.at("tokens_scored").fail("at least one token");
  if (of.layers.empty()) json.at("layers").fail("at least one layer");
  for (const char* list : {"relative_score", "kept", "head_overlap"})
    check_length(json.at(list), of.layers.size(), "layers");
  for (std::size_t layer = 0; layer < of.layers.size(); ++layer) {
    const JsonCursor scores = json.at("relative_score").at(layer), kept = json.at("kept").at(layer);
    if (of.kept[layer].empty()) kept.fail("at least one head");
    check_length(scores, of.kept[layer].size(), "heads");
    for (std::size_t head = 0; head < of.kept[layer].size(); ++head) {
      check_length(scores.at(head), of.tokens_scored, "tokens");
      for (const std::size_t position : of.kept[layer][head])
        if (position < of.first_token || position >= of.first_token + of.tokens_scored)
          kept.at(head).fail("positions of tokens that have scores");
    }
  }
}

double TokenScoresResult::overlap() const {
  const double sum = std::accumulate(head_overlap.begin(), head_overlap.end(), 0.0);
  return sum / static_cast<double>(head_overlap.size());
}

std::string TokenScoresResult::heading() const {
  std::ostringstream text;
  text << head.model.name << " · LagKV, L = " << lag << ", r = " << ratio << " (" << variant << ") · document "
       << document << ", " << window << " tokens";
  return text.str();
}

std::string to_text(const TokenScoresResult& result) {
  const std::size_t partitions = result.tokens_scored / result.lag, kept = result.kept[0][0].size() / partitions;
  std::ostringstream text;
  text.precision(3);
  text << "scores: " << kept << " of every " << result.lag << " tokens stay, of tokens " << result.first_token << " to "
       << result.first_token + result.tokens_scored - 1 << "; a KV head shares " << 100 * result.overlap()
       << " % of what it keeps with another of its layer (chance: "
       << 100 * static_cast<double>(kept) / static_cast<double>(result.lag) << " %)\n";
  return text.str();
}

draw::Chart token_score_chart(const std::string& heading, const TokenScoresResult& result, ScoreRows rows) {
  const TokenMap map = token_map(result, rows == ScoreRows::kHeads);
  const auto [low, high] = score_range(map.score);
  const auto count = static_cast<double>(map.rows.size());
  draw::Chart chart{.heading = heading,
                    .panels = {},
                    .plot_width = 700,
                    .plot_height = std::clamp(std::max(4 * count, std::min(12 * count, 200.0)), 60.0, 420.0)};
  Rows places = map.score;
  for (auto& row : places)
    for (double& score : row) score = (score - low) / (high - low);
  chart.panels = {
      token_panel("relative", "Score relative to a uniform one", result, map, draw::value_bar("score", low, high, 9),
                  std::move(places), tooltips(map.score, [](double score) { return draw::shown(score); })),
      token_panel("kept", "Share of the tokens kept", result, map, draw::share_bar("kept"), map.kept,
                  tooltips(map.kept, [](double share) { return draw::shown_percent(share); }))};
  draw::arrange(chart, 1);
  return chart;
}

}  // namespace kvs::inline results
