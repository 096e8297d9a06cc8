// SPDX-License-Identifier: Apache-2.0
#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"
#include "results/token_scores.h"

namespace kvs::inline report {
namespace {

Markup overlap_table(const TokenScoresResult& result) {
  Table table("What a KV head keeps that another of its layer keeps, too", {{"Layer"}, {"Shared"}});
  for (std::size_t n = 0; n < result.layers.size(); ++n)
    table.row({{std::to_string(result.layers[n]), static_cast<double>(result.layers[n])},
               {shown_tenths(result.head_overlap[n]), result.head_overlap[n]}});
  return folded("Heads that agree, by layer", table.markup());
}

std::string scores_finding(const TokenScoresResult& result) {
  return "LagKV keeps " + shown_percent(result.ratio) + " of each partition of " + counted(result.lag, "token") +
         "; a KV head shares " + shown_percent(result.overlap()) +
         " of what it keeps with another of its layer, where chance gives " + shown_percent(result.ratio) + ".";
}

}  // namespace

Section scores_section(const ReportInputs& inputs) {
  Section section{"scores", "Token scores", {}, {}};
  std::size_t file = 0;
  for (const TokenScoresResult& result : inputs.of<TokenScoresResult>()) {
    const std::string id = "scores-" + std::to_string(file++);
    section.body += figure(page_drawings(token_score_chart("", result, ScoreRows::kLayers), id),
                           "LagKV's scores of the tokens of document " + std::to_string(result.document) +
                               " and which of them stay, means over the KV heads of a layer. The sinks and the last " +
                               "partition always stay and are not drawn.",
                           result.head.command) +
                    overlap_table(result);
    section.findings.push_back(scores_finding(result));
  }
  return section;
}

}  // namespace kvs::inline report
