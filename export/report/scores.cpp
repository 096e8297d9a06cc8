#include <algorithm>

#include "calibrate/config/config_lists.h"
#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"
#include "results/token_score_chart.h"

namespace kvs {
namespace {

constexpr std::uint64_t kMaxScored = 1 << 24;

void add_head(const JsonCursor& scores, const JsonCursor& kept, const TokenScoreMap& map, std::size_t heads,
              std::vector<double>& score_row, std::vector<double>& kept_row) {
  const std::vector<double> values = reals(scores);
  const std::size_t first = map.first.front();
  for (std::size_t column = 0; column < score_row.size(); ++column) {
    const std::size_t begin = column * map.width, end = std::min(begin + map.width, values.size());
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(begin);
    score_row[column] +=
        *std::max_element(from, values.begin() + static_cast<std::ptrdiff_t>(end)) / static_cast<double>(heads);
  }
  for (const std::size_t position : indices(kept)) {
    if (position < first || position >= first + values.size()) kept.fail("positions of tokens that have scores");
    const std::size_t column = (position - first) / map.width,
                      tokens = std::min(map.width, values.size() - column * map.width);
    kept_row[column] += 1 / static_cast<double>(heads * tokens);
  }
}

/// Means over a layer's heads.
TokenScoreMap read_scores(const JsonCursor& root) {
  const auto first = root.at("first_token").unsigned_integer(kMaxScored),
             tokens = root.at("tokens_scored").unsigned_integer(kMaxScored);
  if (tokens == 0) root.at("tokens_scored").fail("at least one token");
  TokenScoreMap map;
  map.width = tokens_per_column(tokens);
  map.rows = draw::number_names(indices(root.at("layers")));
  for (std::size_t token = 0; token < tokens; token += map.width) map.first.push_back(first + token);
  const JsonCursor scores = root.at("relative_score"), kept = root.at("kept");
  for (const JsonCursor& list : {scores, kept}) expect_length(list, map.rows.size(), "layers");
  for (std::size_t layer = 0; layer < map.rows.size(); ++layer) {
    auto &score_row = map.score.emplace_back(map.first.size()), &kept_row = map.kept.emplace_back(map.first.size());
    const std::size_t heads = scores.at(layer).array_size();
    expect_length(kept.at(layer), heads, "heads");
    for (std::size_t head = 0; head < heads; ++head) {
      expect_length(scores.at(layer).at(head), tokens, "tokens");
      add_head(scores.at(layer).at(head), kept.at(layer).at(head), map, heads, score_row, kept_row);
    }
  }
  return map;
}

Markup overlap_table(const std::vector<std::size_t>& layers, const std::vector<double>& overlap) {
  Table table("What a KV head keeps that another of its layer keeps, too", {{"Layer"}, {"Shared"}});
  for (std::size_t n = 0; n < overlap.size(); ++n)
    table.row({{std::to_string(layers[n]), static_cast<double>(layers[n])}, {shown_tenths(overlap[n]), overlap[n]}});
  return folded("Heads that agree, by layer", table.markup());
}

std::string scores_finding(const JsonCursor& root, const std::vector<double>& overlap) {
  const double ratio = root.at("ratio").real();
  return "LagKV keeps " + shown_percent(ratio) + " of each partition of " +
         counted(root.at("lag").unsigned_integer(kMaxScored), "token") + "; a KV head shares " +
         shown_percent(mean_of(overlap)) + " of what it keeps with another of its layer, where chance gives " +
         shown_percent(ratio) + ".";
}

}  // namespace

Section scores_section(const ReportInputs& inputs) {
  Section section{"scores", "Token scores", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kScores)) {
    const JsonCursor root = output->root();
    const TokenScoreMap map = read_scores(root);
    const std::vector<double> overlap = reals(root.at("head_overlap"));
    expect_length(root.at("head_overlap"), map.rows.size(), "layers");
    if (overlap.empty()) continue;
    const std::string id = "scores-" + std::to_string(file++);
    section.body += figure(page_drawings(token_score_chart("", map, "layer"), id),
                           "LagKV's scores of the tokens of document " +
                               std::to_string(root.at("document").unsigned_integer(kMaxScored)) +
                               " and which of them stay, means over the KV heads of a layer. The sinks and the last " +
                               "partition always stay and are not drawn.",
                           root.at("command").string()) +
                    overlap_table(indices(root.at("layers")), overlap);
    section.findings.push_back(scores_finding(root, overlap));
  }
  return section;
}

}  // namespace kvs
