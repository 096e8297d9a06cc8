// SPDX-License-Identifier: Apache-2.0
#include "results/coding_gain.h"

#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"
#include "results/spectrum.h"

namespace kvs::inline report {
namespace {

using Steps = CodingGainResult::Steps;

void add_row(Table& table, StateKind state, const std::string& variant, const Steps& layers,
             const std::vector<std::optional<double>>* joint) {
  std::vector<Cell> row{state == StateKind::kV ? "values" : "keys before RoPE", variant};
  for (std::size_t step = 0; step < kGainSteps; ++step) {
    const std::vector<double> gains = gains_of(layers, static_cast<GainStep>(step), joint);
    row.push_back(gains.empty() ? Cell::missing() : Cell(shown(mean_of(gains), 2), mean_of(gains)));
  }
  table.row(row);
}

Table gain_table(const CodingGainResult::Measured& gains) {
  Table table("Coding gain: bits a real that each step saves, means over layers",
              {{"States", false},
               {"Errors count", false},
               {"Mean", true, "each channel's mean subtracted"},
               {"Channels", true, "bits by channel"},
               {"KLT of a head"},
               {"KLT of a layer", true, "beyond those of its heads"},
               {"Keys and values", true, "one KLT of both, beyond those"},
               {"Along tokens", true, "DCT of the longest blocks, beyond the KLT of a head"}});
  for (const StateKind state : {StateKind::kKPre, StateKind::kV}) {
    if (const auto& removed = gains.mean_removed.states[state]) {
      add_row(table, state, "alike", removed->all.layers, &gains.mean_removed.joint);
      if (removed->weighted) add_row(table, state, "by what they cost the output", removed->weighted->layers, nullptr);
    }
    if (const auto& kept = gains.mean_kept.states[state])
      add_row(table, state, "alike, mean kept", kept->all.layers, &gains.mean_kept.joint);
  }
  return table;
}

}  // namespace

Section coding_gain_section(const ReportInputs& inputs) {
  Section section{"coding-gain", "Coding gain", {}, {}};
  std::size_t file = 0;
  for (const SpectrumResult& result : inputs.of<SpectrumResult>()) {
    if (!result.coding_gain || !result.coding_gain->measured) continue;
    const CodingGainResult::Measured& gains = *result.coding_gain->measured;
    const Table table = gain_table(gains);
    if (table.empty()) continue;
    const draw::Chart chart = coding_gain_chart("", result.layers, *result.coding_gain);
    section.body +=
        figure(page_drawings(chart, "gain-" + std::to_string(file++)) + page_legend(chart),
               "What each step of a transform coder saves at equal distortion, in bits a real, stacked, by layer.",
               result.command) +
        table.markup();
    for (const FamilyFinding& finding : gains.families) section.findings.push_back(finding.words);
  }
  return section;
}

}  // namespace kvs::inline report
