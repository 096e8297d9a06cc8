// SPDX-License-Identifier: Apache-2.0
#include "results/recommendation.h"

#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs::inline report {
namespace {

Cell top1_cell(const ScoredLoss& loss) {
  if (!loss.tail) return share_cell(loss.top1);
  const auto& [low, high] = loss.tail->top1_interval;
  return {shown_tenths(loss.top1) + " (" + shown_tenths(low) + " to " + shown_tenths(high) + ")", loss.top1};
}

void add_cache(Table& table, const char* role, const Recommendation& one, const Recommendation::Cache& cache) {
  const ScoredLoss& loss = cache.loss;
  const auto quantile = [&](double DivergenceTail::*member) {
    return loss.tail ? number_cell(*loss.tail.*member) : Cell::missing();
  };
  table.row({cache.label, role, Cell(shown_count(static_cast<std::size_t>(cache.bytes)), cache.bytes),
             bytes_cell(cache.bytes / one.full_bytes, 0), change_cell(loss.ratio.change()),
             interval_cell(loss.ratio.change_interval()), number_cell(loss.kl), quantile(&DivergenceTail::p99),
             quantile(&DivergenceTail::p999), top1_cell(loss),
             cache.retrieval ? share_cell(cache.retrieval->accuracy) : Cell::missing()},
            one.chosen && cache.label == one.chosen->label ? "front-row" : "");
}

Markup caches_table(const Recommendation& one) {
  Table table("Caches of " + one.engine + " around the recommended one",
              {{"Cache", false},
               {"Role", false},
               {"Bytes", true, "of one sequence of " + counted(one.sized, "token")},
               {"Share", true, "of the full cache's bytes at 16 bits"},
               {"Perplexity", true, "change from the full cache's"},
               {"95\u00A0%", true, "interval of the change"},
               {"KL", true, "divergence from the full cache's predictions, nats a token"},
               {"99\u00A0%", true, "of the tokens have a smaller divergence"},
               {"99.9\u00A0%", true, "of the tokens have a smaller divergence"},
               {"Top-1", true, "tokens with the full cache's first choice, with its 95\u00A0% interval"},
               {"Retrieval", true, "questions answered"}});
  if (one.safer) add_cache(table, one.chosen ? "next safer" : "least KL", one, *one.safer);
  if (one.chosen) add_cache(table, "recommended", one, *one.chosen);
  if (one.smaller) add_cache(table, "next smaller", one, *one.smaller);
  for (const Recommendation::Cache& cache : one.unsafe) add_cache(table, "do not use", one, cache);
  return table.empty() ? Markup() : table.markup();
}

/// Returns the flags and notes of the engine.
Markup use_of(const Recommendation& one) {
  if (!one.use) return {};
  Markup notes;
  for (const std::string& note : one.use->notes) notes += element("li", note);
  return (one.use->flags.empty() ? Markup() : element("p", text("Flags: ") + element("code", one.use->flags))) +
         (notes.empty() ? Markup() : element("ul", notes));
}

}  // namespace

Section recommendation_section(const ReportInputs& inputs) {
  Section section{"recommendation", "Recommendation", {}, {}};
  for (const Recommendation& one : inputs.of<Recommendation>()) {
    const std::string measured = measured_text(one);
    section.body += heading(one.engine + " (" + one.engine_version + ")") + paragraph(advice(one)) + use_of(one) +
                    caches_table(one) + (measured.empty() ? Markup() : paragraph(capitalised(measured) + ".")) +
                    command_block(one.head.command);
    section.findings.push_back(one.engine + ": " + advice(one));
  }
  return section;
}

}  // namespace kvs::inline report
