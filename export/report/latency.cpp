// SPDX-License-Identifier: Apache-2.0
#include "results/latency.h"

#include <span>

#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"

namespace kvs::inline report {
namespace {

Markup latency_table(const LatencyResult& result) {
  Table table("Time of a token", {{"Cache", false},
                                  {"Tokens", true, "of the prefill"},
                                  {"Prefill, ms"},
                                  {"To full", true, "median of the ratios to the full cache's prefill"},
                                  {"Decode, ms"},
                                  {"To full", true, "median of the ratios to the full cache's decoding"}});
  const auto ms = [](double time) { return Cell(shown(time), time); };
  const auto times = [](double ratio) { return Cell("\u00D7 " + shown(ratio), ratio); };
  for (const CacheLatency& cache : result.caches)
    for (std::size_t n = 0; n < result.lengths.size(); ++n)
      table.row({cache.label,
                 {shown_count(result.lengths[n]), static_cast<double>(result.lengths[n])},
                 ms(cache.prefill_ms[n]),
                 times(cache.prefill_ratio[n]),
                 ms(cache.decode_ms[n]),
                 times(cache.decode_ratio[n])});
  return table.markup();
}

std::string latency_finding(const LatencyResult& result) {
  std::string words;
  for (const CacheLatency& cache : std::span(result.caches).subspan(1))  // the first is the full cache
    words += (words.empty() ? "" : "; ") + spoken(cache.label) + ": \u00D7 " + shown(cache.prefill_ratio.back()) +
             " in prefill, \u00D7 " + shown(cache.decode_ratio.back()) + " in decoding";
  return words.empty() ? words
                       : "Time of a token relative to the full cache's, after " +
                             counted(result.lengths.back(), "token") + ": " + words + ".";
}

}  // namespace

Section latency_section(const ReportInputs& inputs) {
  Section section{"latency", "Speed", {}, {}};
  std::size_t file = 0;
  for (const LatencyResult& result : inputs.of<LatencyResult>()) {
    const draw::Chart chart = latency_chart("", result);
    section.body +=
        figure(page_drawings(chart, "latency-" + std::to_string(file++)) + page_legend(chart),
               "Milliseconds per token by the length of the prefill, medians of " + counted(result.repeats, "repeat") +
                   ", " + result.dtype + " on " + result.device + "; the caches took turns.",
               result.head.command) +
        latency_table(result);
    if (std::string finding = latency_finding(result); !finding.empty()) section.findings.push_back(std::move(finding));
  }
  return section;
}

}  // namespace kvs::inline report
