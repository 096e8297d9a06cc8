// SPDX-License-Identifier: Apache-2.0
#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"
#include "results/trace.h"

namespace kvs::inline report {
namespace {

double shared_bytes(const TraceResult& result) { return static_cast<double>(result.shared_bytes.value_or(0)); }

std::string extent_of(const TraceResult& result) {
  const TraceSettings& settings = result.settings;
  return counted(result.quality.samples.size(), "prompt") + ", traces of at most " + counted(settings.tokens, "token") +
         (settings.temperature == 0 ? "" : " at temperature " + shown_short(settings.temperature));
}

std::string range_words(const Range& range) {
  return range ? " (" + shown(range->first) + " to " + shown(range->second) + ")" : "";
}

void add_trace_row(Table& table, const TraceResult& result) {
  const TraceQuality& quality = result.quality;
  const OwnContinuations& own = quality.own;
  table.row({cache_label(result.method, result.parameters),
             result.parameters ? settings_text(*result.parameters) : "",
             extent_of(result),
             bytes_cell(quality.bytes_ratio, shared_bytes(result)),
             {shown(quality.kl.mean) + range_words(quality.kl.interval), quality.kl.mean},
             {shown(quality.tail.p99), quality.tail.p99},
             {shown_percent(quality.top1.mean), quality.top1.mean},
             {shown(own.same_tokens.mean) + range_words(own.same_tokens.interval), own.same_tokens.mean},
             {shown_percent(own.undiverged), own.undiverged}});
}

std::string trace_finding(const TraceResult& result) {
  const TraceQuality& quality = result.quality;
  return "With " + spoken(cache_label(result.method, result.parameters)) + " the model's own texts keep the same " +
         shown(quality.own.same_tokens.mean) + " tokens on average before the first other one, on " +
         shown_percent(quality.bytes_ratio) + " of the bytes; " + shown_percent(quality.own.undiverged) +
         " of the prompts do not diverge (" + extent_of(result) + ").";
}

}  // namespace

Section traces_section(const ReportInputs& inputs) {
  Section section{"traces", "Generated texts", {}, {}};
  Table table("Caches on texts that the model generates with the full cache",
              {{"Cache", false},
               {"Settings", false},
               {"Prompts", false},
               {"Bytes", true, "most that were held, of the full cache; mean over prompts"},
               {"KL divergence", true, "nats a token of the traces, with its 95 % interval over prompts"},
               {"KL, 99 %", true, "the tokens' 99 % quantile"},
               {"Same first choice", true, "share of the traces' tokens"},
               {"Same tokens", true, "before the cache's own continuation first differs, with its 95 % interval"},
               {"Not diverged", true, "share of the prompts whose own continuation equals the trace"}});
  Markup drawings;
  std::size_t file = 0;
  for (const TraceResult& result : inputs.of<TraceResult>()) {
    add_trace_row(table, result);
    drawings += figure(page_drawings(trace_chart("", result.quality), "trace-" + std::to_string(file++)),
                       cache_label(result.method, result.parameters) +
                           ": prompts whose own continuation is still that of the full cache, and the divergence of "
                           "the predictions for the full cache's tokens. " +
                           capitalised(extent_of(result)) + ".",
                       result.command);
    section.findings.push_back(trace_finding(result));
  }
  if (!table.empty()) section.body = table.markup() + drawings;
  return section;
}

}  // namespace kvs::inline report
