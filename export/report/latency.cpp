#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/config/config_lists.h"
#include "export/report/lines.h"
#include "export/report/markers.h"
#include "export/report/numbers.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"

namespace kvs {
namespace {

struct Phase {
  std::string_view key, title;
};
constexpr std::array kPhases{Phase{"prefill", "Prefill"}, Phase{"decode", "Decode"}};

/// A cache's times by length: milliseconds per token and the ratio to the full cache's.
struct TimedPhase {
  std::vector<double> milliseconds, ratio;
};
struct TimedLabel {
  std::string label;
  std::array<TimedPhase, kPhases.size()> phases;
};

std::vector<TimedLabel> read_latency(const JsonCursor& root, std::size_t lengths) {
  std::vector<TimedLabel> all;
  for (std::size_t n = 0; n < root.at("caches").array_size(); ++n) {
    const JsonCursor cache = root.at("caches").at(n);
    TimedLabel& one = all.emplace_back(cache.at("label").string(), decltype(TimedLabel::phases){});
    for (std::size_t phase = 0; phase < kPhases.size(); ++phase) {
      const std::string key(kPhases[phase].key);
      for (const char* unit : {"_ms", "_ratio"}) expect_length(cache.at(key + unit), lengths, "lengths");
      one.phases[phase] = {reals(cache.at(key + "_ms")), reals(cache.at(key + "_ratio"))};
    }
  }
  if (all.empty()) root.at("caches").fail("at least one cache");
  return all;
}

/// From power of two to power of two.
Axis length_axis(const std::vector<std::size_t>& lengths) {
  const double low = std::exp2(std::floor(std::log2(static_cast<double>(lengths.front())))),
               high = std::exp2(std::ceil(std::log2(static_cast<double>(lengths.back()))));
  return {low, std::max(high, 2 * low), Axis::Scale::kHalving};
}

Markup latency_drawing(const std::vector<TimedLabel>& all, std::size_t phase, const std::vector<std::size_t>& lengths,
                       const std::string& id) {
  const std::string title(kPhases[phase].title);
  double most = 0;
  std::vector<Lines::Line> lines;
  for (const TimedLabel& one : all) {
    Lines::Line& line = lines.emplace_back(one.label, std::vector<Lines::Point>{});
    const auto& [milliseconds, ratio] = one.phases[phase];
    for (std::size_t n = 0; n < lengths.size(); ++n) {
      most = std::max(most, milliseconds[n]);
      line.points.push_back(
          {static_cast<double>(lengths[n]),
           milliseconds[n],
           {},
           shown_count(lengths[n]) + " tokens: " + shown(milliseconds[n]) + "\u00A0ms, \u00D7 " + shown(ratio[n])});
    }
  }
  return draw_lines({.words = {id + "-" + std::string(kPhases[phase].key), title,
                               title + " time of a token by the tokens before it, for each cache."},
                     .x = length_axis(lengths),
                     .y = Axis::rounded(0, most, 5),
                     .x_name = "tokens",
                     .y_name = "ms a token",
                     .lines = lines});
}

Markup latency_table(const std::vector<TimedLabel>& all, const std::vector<std::size_t>& lengths) {
  Table table("Time of a token", {{"Cache", false},
                                  {"Tokens", true, "of the prefill"},
                                  {"Prefill, ms"},
                                  {"To full", true, "median of the ratios to the full cache's prefill"},
                                  {"Decode, ms"},
                                  {"To full", true, "median of the ratios to the full cache's decoding"}});
  for (const TimedLabel& one : all)
    for (std::size_t n = 0; n < lengths.size(); ++n) {
      std::vector<Cell> row{one.label, {shown_count(lengths[n]), static_cast<double>(lengths[n])}};
      for (const auto& [milliseconds, ratio] : one.phases) {
        row.emplace_back(shown(milliseconds[n]), milliseconds[n]);
        row.emplace_back("\u00D7 " + shown(ratio[n]), ratio[n]);
      }
      table.row(row);
    }
  return table.markup();
}

std::string latency_finding(const std::vector<TimedLabel>& all, std::size_t length) {
  std::string words;
  for (const TimedLabel& one : all) {
    if (&one == &all.front()) continue;  // the full cache
    words += (words.empty() ? "" : "; ") + spoken(one.label) + ": \u00D7 " + shown(one.phases[0].ratio.back()) +
             " in prefill, \u00D7 " + shown(one.phases[1].ratio.back()) + " in decoding";
  }
  return words.empty()
             ? words
             : "Time of a token relative to the full cache's, after " + counted(length, "token") + ": " + words + ".";
}

std::vector<std::string> labels_of(const std::vector<TimedLabel>& all) {
  std::vector<std::string> labels;
  for (const TimedLabel& one : all) labels.push_back(one.label);
  return labels;
}

}  // namespace

Section latency_section(const ReportInputs& inputs) {
  Section section{"latency", "Speed", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kLatency)) {
    const JsonCursor root = output->root();
    const auto lengths = indices(root.at("lengths"));
    if (lengths.empty() || lengths.front() == 0) root.at("lengths").fail("lengths above 0");
    const std::vector<TimedLabel> all = read_latency(root, lengths.size());
    const std::string id = "latency-" + std::to_string(file++);
    Markup drawings;
    for (std::size_t phase = 0; phase < kPhases.size(); ++phase) drawings += latency_drawing(all, phase, lengths, id);
    section.body +=
        figure(drawings + legend(labels_of(all)),
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
