#include <algorithm>

#include "calibrate/config/config_lists.h"
#include "export/report/heat_map.h"
#include "export/report/numbers.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs {
namespace {

constexpr std::size_t kMostColumns = 64;  // of a map; each stands for as many tokens as it takes
constexpr std::uint64_t kMostScored = 1 << 24;

/// Means over a layer's heads of some neighbouring tokens.
struct ScoredCell {
  double score = 0;  // the largest relative one of the tokens, mean over heads
  double kept = 0;   // share of the tokens that stay
};

struct TokenMap {
  std::vector<std::size_t> layers, first;      // of the rows; first token of each column
  std::vector<std::vector<ScoredCell>> cells;  // [layer][column]
};

void add_head(const JsonCursor& scores, const JsonCursor& kept, std::size_t first, std::size_t width, std::size_t heads,
              std::vector<ScoredCell>& row) {
  const std::vector<double> values = reals(scores);
  for (std::size_t column = 0; column < row.size(); ++column) {
    const std::size_t begin = column * width, end = std::min(begin + width, values.size());
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(begin);
    row[column].score +=
        *std::max_element(from, values.begin() + static_cast<std::ptrdiff_t>(end)) / static_cast<double>(heads);
  }
  for (const std::size_t position : indices(kept)) {
    if (position < first || position >= first + values.size()) kept.fail("positions of tokens that have scores");
    const std::size_t column = (position - first) / width, tokens = std::min(width, values.size() - column * width);
    row[column].kept += 1 / static_cast<double>(heads * tokens);
  }
}

TokenMap read_scores(const JsonCursor& root) {
  const auto first = root.at("first_token").unsigned_integer(kMostScored),
             tokens = root.at("tokens_scored").unsigned_integer(kMostScored);
  if (tokens == 0) root.at("tokens_scored").fail("at least one token");
  const std::size_t width = (tokens + kMostColumns - 1) / kMostColumns;
  TokenMap map{indices(root.at("layers")), {}, {}};
  for (std::size_t token = 0; token < tokens; token += width) map.first.push_back(first + token);
  const JsonCursor scores = root.at("relative_score"), kept = root.at("kept");
  for (const JsonCursor& list : {scores, kept}) expect_length(list, map.layers.size(), "layers");
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    auto& row = map.cells.emplace_back(map.first.size());
    const std::size_t heads = scores.at(layer).array_size();
    expect_length(kept.at(layer), heads, "heads");
    for (std::size_t head = 0; head < heads; ++head) {
      expect_length(scores.at(layer).at(head), tokens, "tokens");
      add_head(scores.at(layer).at(head), kept.at(layer).at(head), first, width, heads, row);
    }
  }
  return map;
}

/// @param share  of a cell: its place on the colour scale
template <class Share, class Told>
Markup token_map(const TokenMap& tokens, const DrawingText& words, const ColourKey& key, Share share, Told told) {
  HeatMap map{.words = words,
              .row_word = "layer",
              .column_word = "token",
              .rows = {},
              .columns = {},
              .colours = {},
              .values = {},
              .key = key};
  for (const std::size_t layer : tokens.layers) map.rows.push_back(std::to_string(layer));
  for (const std::size_t first : tokens.first) map.columns.push_back(shown_count(first));
  for (const auto& row : tokens.cells) {
    map.colours.emplace_back();
    map.values.emplace_back();
    for (const ScoredCell& cell : row) {
      map.colours.back().push_back(sequential_class(share(cell)));
      map.values.back().push_back(told(cell));
    }
  }
  return heat_map(map);
}

Markup score_drawing(const TokenMap& tokens, const std::string& id) {
  constexpr double kScale = 0.995;  // of the cells lie within the colours: a single token would set them else
  std::vector<double> sorted;
  for (const auto& row : tokens.cells)
    for (const ScoredCell& cell : row) sorted.push_back(cell.score);
  std::ranges::sort(sorted);
  const double low = sorted.front(),
               high = std::max(sorted[static_cast<std::size_t>(kScale * static_cast<double>(sorted.size() - 1))],
                               low + 1e-3);
  return token_map(
      tokens,
      {id + "-relative", "Score relative to a uniform one",
       "Largest relative score of neighbouring tokens by layer and token, mean over KV heads."},
      sequential_key(shown(low), shown(high)),
      [&](const ScoredCell& cell) { return (cell.score - low) / (high - low); },
      [](const ScoredCell& cell) { return shown(cell.score); });
}

Markup kept_drawing(const TokenMap& tokens, const std::string& id) {
  return token_map(
      tokens, {id + "-kept", "Share of the tokens kept", "Share of the tokens that stay, by layer and token."},
      sequential_key(shown_percent(0), shown_percent(1)), [](const ScoredCell& cell) { return cell.kept; },
      [](const ScoredCell& cell) { return shown_percent(cell.kept); });
}

Markup overlap_table(const TokenMap& tokens, const std::vector<double>& overlap) {
  Table table("What a KV head keeps that another of its layer keeps, too", {{"Layer"}, {"Shared"}});
  for (std::size_t n = 0; n < overlap.size(); ++n)
    table.row({{std::to_string(tokens.layers[n]), static_cast<double>(tokens.layers[n])},
               {shown_tenths(overlap[n]), overlap[n]}});
  return folded("Heads that agree, by layer", table.markup());
}

std::string scores_finding(const JsonCursor& root, const std::vector<double>& overlap) {
  const double ratio = root.at("ratio").real();
  return "LagKV keeps " + shown_percent(ratio) + " of each partition of " +
         counted(root.at("lag").unsigned_integer(kMostScored), "token") + "; a KV head shares " +
         shown_percent(mean_of(overlap)) + " of what it keeps with another of its layer, where chance gives " +
         shown_percent(ratio) + ".";
}

}  // namespace

Section scores_section(const ReportInputs& inputs) {
  Section section{"scores", "Token scores", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kScores)) {
    const JsonCursor root = output->root();
    const TokenMap tokens = read_scores(root);
    const std::vector<double> overlap = reals(root.at("head_overlap"));
    expect_length(root.at("head_overlap"), tokens.layers.size(), "layers");
    if (overlap.empty()) continue;
    const std::string id = "scores-" + std::to_string(file++);
    section.body += figure(score_drawing(tokens, id) + kept_drawing(tokens, id),
                           "LagKV's scores of the tokens of document " +
                               std::to_string(root.at("document").unsigned_integer(kMostScored)) +
                               " and which of them stay, means over the KV heads of a layer. The sinks and the last " +
                               "partition always stay and are not drawn.",
                           root.at("command").string()) +
                    overlap_table(tokens, overlap);
    section.findings.push_back(scores_finding(root, overlap));
  }
  return section;
}

}  // namespace kvs
