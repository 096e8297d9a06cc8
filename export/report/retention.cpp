// SPDX-License-Identifier: Apache-2.0
#include "results/retention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs::inline report {
namespace {

using Curve = RetentionResult::Curve;

std::string words_of(CutStates states) {
  constexpr std::array kWords{"keys", "values", "keys and values"};
  return kWords[static_cast<std::size_t>(states)];
}

Markup retention_table(const RetentionResult& result) {
  Table table("Perplexity relative to whole spectra",
              {{"Kept", false}, {"Of", false}, {"Share"}, {"Perplexity \u00D7"}, {"95\u00A0%", true, "of the change"}});
  for (const Curve& curve : result.curves)
    for (std::size_t n = 0; n < result.shares.size(); ++n)
      if (curve.ratio[n])
        table.row({std::string(words_of(curve.band)),
                   words_of(curve.states),
                   {shown_percent(result.shares[n]), result.shares[n]},
                   {shown(*curve.ratio[n]), *curve.ratio[n]},
                   interval_cell(as_change(curve.interval[n]))});
  return folded("All values as a table", table.markup());
}

/// Returns the ratio at the share nearest to one half, or an empty string if the ratio does not fit a double.
std::string half_words(const RetentionResult& result, const Curve& curve) {
  std::optional<std::size_t> half;
  const auto distance = [&](std::size_t n) { return std::abs(result.shares[n] - 0.5); };
  for (std::size_t n = 0; n < result.shares.size(); ++n)
    if (curve.ratio[n] && (!half || distance(n) < distance(*half))) half = n;
  if (!half) return "";
  return shown(*curve.ratio[*half]) +
         (zero_note(as_change(curve.interval[*half])).empty() ? "" : " (not told from 1)") + " with the " +
         std::string(words_of(curve.band)) + " " + shown_percent(result.shares[*half]);
}

/// Returns the finding on what the halves of the spectrum contribute.
std::string retention_finding(const RetentionResult& result) {
  std::string finding;
  for (const CutStates states : kCutStates) {
    std::string of_states;
    for (const Curve& curve : result.curves)
      if (const std::string words = half_words(result, curve); curve.states == states && !words.empty())
        of_states += (of_states.empty() ? "" : ", ") + words;
    if (!of_states.empty()) finding += (finding.empty() ? "" : "; of ") + words_of(states) + ": \u00D7 " + of_states;
  }
  return finding.empty() ? finding : "Perplexity where part of the " + result.unit + "s is kept, of " + finding + ".";
}

}  // namespace

Section retention_section(const ReportInputs& inputs) {
  Section section{"retention", "Kept bands", {}, {}};
  std::size_t file = 0;
  for (const RetentionResult& result : inputs.of<RetentionResult>()) {
    const draw::Chart chart = retention_chart("", result);
    section.body += figure(page_drawings(chart, "retention-" + std::to_string(file++)) + page_legend(chart),
                           "Perplexity when every layer keeps part of its spectrum (" + result.transform + " of " +
                               result.key_space + ", " + result.protocol + ", " + counted(result.units, result.unit) +
                               "), relative to " +
                               (result.ppl_full ? shown(*result.ppl_full, 4) : perplexity_words(*result.nll_full)) +
                               " with whole spectra. Bands are intervals of 95 %; what goes beyond the axis is cut.",
                           result.head.command) +
                    retention_table(result);
    if (std::string finding = retention_finding(result); !finding.empty())
      section.findings.push_back(std::move(finding));
  }
  return section;
}

}  // namespace kvs::inline report
