// SPDX-License-Identifier: Apache-2.0
#include "results/perturbation.h"

#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs::inline report {
namespace {

std::string states_in_text(StateKind state) { return state == StateKind::kV ? "values" : "keys before RoPE"; }
std::string group_in_text(bool same) { return same ? "tokens stay" : "tokens move"; }

std::string group_finding(const PerturbationResult& result, bool same) {
  std::string words = "Where " + group_in_text(same) + " (" + counted(result.documents_of(same), "document") +
                      "), the similarity of a text and its copy with " + shown_percent(result.share) +
                      " of its words replaced by synonyms is";
  for (const StateKind state : kPerturbedStates) {
    const PerturbationResult::Bands& bands = result.bands(state, same);
    words += (state == kPerturbedStates.front() ? " " : "; ") + shown(bands.low.overall()) +
             " in the lower half of the frequencies of " + states_in_text(state) + ", " +
             shown(bands.low_without_dc.overall()) + " there without DC, " + shown(bands.high.overall()) +
             " in the upper half";
  }
  return words + ".";
}

Cell similarity_cell(const SimilarityCurve& curve) { return {shown(curve.overall()), curve.overall()}; }

Markup similarity_table(const PerturbationResult& result) {
  Table table("Cosine similarity, means over layers", {{"States", false},
                                                       {"Tokens", false},
                                                       {"Documents"},
                                                       {"Lower half"},
                                                       {"Without DC", true, "the lower half but the mean"},
                                                       {"Upper half"}});
  for (const bool same : {true, false})
    for (const StateKind state : kPerturbedStates) {
      const std::size_t documents = result.documents_of(same);
      if (documents == 0) continue;
      const PerturbationResult::Bands& bands = result.bands(state, same);
      table.row({states_in_text(state),
                 group_in_text(same),
                 {shown_count(documents), static_cast<double>(documents)},
                 similarity_cell(bands.low),
                 similarity_cell(bands.low_without_dc),
                 similarity_cell(bands.high)});
    }
  return table.markup();
}

}  // namespace

Section perturbation_section(const ReportInputs& inputs) {
  Section section{"perturbation", "Texts with synonyms", {}, {}};
  std::size_t file = 0;
  for (const PerturbationResult& result : inputs.of<PerturbationResult>()) {
    const draw::Chart chart = perturbation_chart("", result);
    if (chart.panels.empty()) continue;
    for (const bool same : {true, false})
      if (result.documents_of(same) > 0) section.findings.push_back(group_finding(result, same));
    section.body +=
        figure(page_drawings(chart, "synonyms-" + std::to_string(file++)) + page_legend(chart),
               "Cosine similarity of the spectra of a text and of its copy with synonyms, by layer, on documents of " +
                   shown_count(result.tokens) +
                   " tokens. Tokens move where a synonym has another number of them; bands are intervals of 95 %.",
               result.head.command) +
        similarity_table(result);
  }
  return section;
}

}  // namespace kvs::inline report
