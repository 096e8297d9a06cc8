#include "calibrate/config/config_lists.h"
#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"
#include "results/latency_chart.h"

namespace kvs {
namespace {

CacheTimes::Phase read_phase(const JsonCursor& cache, const std::string& key, std::size_t lengths) {
  for (const char* unit : {"_ms", "_ratio"}) expect_length(cache.at(key + unit), lengths, "lengths");
  return {reals(cache.at(key + "_ms")), reals(cache.at(key + "_ratio"))};
}

std::vector<CacheTimes> read_latency(const JsonCursor& root, std::size_t lengths) {
  std::vector<CacheTimes> all;
  for (std::size_t n = 0; n < root.at("caches").array_size(); ++n) {
    const JsonCursor cache = root.at("caches").at(n);
    all.push_back(
        {cache.at("label").string(), read_phase(cache, "prefill", lengths), read_phase(cache, "decode", lengths)});
  }
  if (all.empty()) root.at("caches").fail("at least one cache");
  return all;
}

Markup latency_table(const std::vector<CacheTimes>& all, const std::vector<std::size_t>& lengths) {
  Table table("Time of a token", {{"Cache", false},
                                  {"Tokens", true, "of the prefill"},
                                  {"Prefill, ms"},
                                  {"To full", true, "median of the ratios to the full cache's prefill"},
                                  {"Decode, ms"},
                                  {"To full", true, "median of the ratios to the full cache's decoding"}});
  for (const CacheTimes& one : all)
    for (std::size_t n = 0; n < lengths.size(); ++n) {
      std::vector<Cell> row{one.label, {shown_count(lengths[n]), static_cast<double>(lengths[n])}};
      for (const CacheTimes::Phase* phase : {&one.prefill, &one.decode}) {
        row.emplace_back(shown(phase->milliseconds[n]), phase->milliseconds[n]);
        row.emplace_back("\u00D7 " + shown(phase->ratio[n]), phase->ratio[n]);
      }
      table.row(row);
    }
  return table.markup();
}

std::string latency_finding(const std::vector<CacheTimes>& all, std::size_t length) {
  std::string words;
  for (const CacheTimes& one : all) {
    if (&one == &all.front()) continue;  // the full cache
    words += (words.empty() ? "" : "; ") + spoken(one.label) + ": \u00D7 " + shown(one.prefill.ratio.back()) +
             " in prefill, \u00D7 " + shown(one.decode.ratio.back()) + " in decoding";
  }
  return words.empty()
             ? words
             : "Time of a token relative to the full cache's, after " + counted(length, "token") + ": " + words + ".";
}

}  // namespace

Section latency_section(const ReportInputs& inputs) {
  Section section{"latency", "Speed", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kLatency)) {
    const JsonCursor root = output->root();
    const auto lengths = indices(root.at("lengths"));
    if (lengths.empty() || lengths.front() == 0) root.at("lengths").fail("lengths above 0");
    const std::vector<CacheTimes> all = read_latency(root, lengths.size());
    const draw::Chart chart = latency_chart("", lengths, all);
    section.body +=
        figure(page_drawings(chart, "latency-" + std::to_string(file++)) + page_legend(chart),
               "Milliseconds per token by the length of the prefill, medians of " +
                   counted(root.at("repeats").unsigned_integer(1 << 24), "repeat") + ", " + root.at("dtype").string() +
                   " on " + root.at("device").string() + "; the caches took turns.",
               root.at("command").string()) +
        latency_table(all, lengths);
    if (std::string finding = latency_finding(all, lengths.back()); !finding.empty())
      section.findings.push_back(std::move(finding));
  }
  return section;
}

}  // namespace kvs
