#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "calibrate/config/config_lists.h"
#include "export/report/lines.h"
#include "export/report/markers.h"
#include "export/report/numbers.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kKeptWords{
    {{"low", "lowest"}, {"high", "highest"}, {"best", "largest \u0394"}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kCutWords{
    {{"k", "keys"}, {"v", "values"}, {"kv", "keys and values"}}};

template <class Words>
std::string words_of(const JsonCursor& member, const Words& words) {
  const auto row = std::ranges::find(words, std::string_view(member.string()), &Words::value_type::first);
  if (row == words.end()) member.fail("a name that kvspectrum retain gives");
  return std::string(row->second);
}

/// Perplexity relative to whole spectra by the share that is kept.
struct Retained {
  std::string states;
  Lines::Line line;
};

std::vector<Retained> read_retained(const JsonCursor& root) {
  const std::vector<double> shares = reals(root.at("shares"));
  std::vector<Retained> all;
  for (std::size_t n = 0; n < root.at("curves").array_size(); ++n) {
    const JsonCursor curve = root.at("curves").at(n), ratio = curve.at("ratio"), interval = curve.at("interval");
    for (const JsonCursor& list : {ratio, interval}) expect_length(list, shares.size(), "shares");
    Retained& one = all.emplace_back(words_of(curve.at("states"), kCutWords),
                                     Lines::Line{words_of(curve.at("band"), kKeptWords), {}});
    for (std::size_t share = 0; share < shares.size(); ++share) {
      if (ratio.at(share).is_null()) continue;  // beyond a double
      const double value = ratio.at(share).positive();
      const auto range = range_of(interval.at(share));
      one.line.points.push_back(
          {shares[share], value, range,
           shown_percent(shares[share]) + " of the bins: perplexity \u00D7 " + shown(value) + interval_note(range)});
    }
    std::ranges::sort(one.line.points, {}, &Lines::Point::x);
  }
  return all;
}

/// One for all panels: around every ratio, 1 among them.
Axis ratio_axis(const std::vector<Retained>& all) {
  double low = 0.95, high = 2;
  for (const Retained& one : all)
    for (const Lines::Point& point : one.line.points) {
      low = std::min(low, 0.95 * point.y);
      high = std::max(high, 1.2 * point.y);
    }
  return {low, high, Axis::Scale::kLogarithmic};
}

std::vector<std::string> kept_names(const std::vector<Retained>& all) {
  std::vector<std::string> names;
  for (const Retained& one : all)
    if (std::ranges::find(names, one.line.name) == names.end()) names.push_back(one.line.name);
  return names;
}

Markup retention_drawings(const std::vector<Retained>& all, const std::string& id) {
  Markup drawings;
  for (const auto& [key, states] : kCutWords) {
    std::vector<Lines::Line> lines;
    for (const Retained& one : all)
      if (one.states == states) lines.push_back(one.line);
    if (lines.empty()) continue;
    drawings += draw_lines({.words = {id + "-" + std::string(key), capitalised(std::string(states)),
                                      "Perplexity relative to whole spectra by the share of the spectrum of " +
                                          std::string(states) + " that is kept; the vertical axis is logarithmic."},
                            .x = Axis(0, 1),
                            .y = ratio_axis(all),
                            .x_name = "share kept",
                            .y_name = "perplexity \u00D7",
                            .x_tick = percent_label,
                            .x_ticks = 5,
                            .lines = lines});
  }
  return drawings + legend(kept_names(all));
}

Markup retention_table(const std::vector<Retained>& all) {
  Table table("Perplexity relative to whole spectra",
              {{"Kept", false}, {"Of", false}, {"Share"}, {"Perplexity \u00D7"}, {"95\u00A0%", true, "of the change"}});
  for (const Retained& one : all)
    for (const Lines::Point& point : one.line.points) {
      table.row({one.line.name,
                 one.states,
                 {shown_percent(point.x), point.x},
                 {shown(point.y), point.y},
                 interval_cell(as_change(point.interval))});
    }
  return folded("All values as a table", table.markup());
}

/// What the halves of the spectrum are worth: of each curve the share that is nearest to a half.
std::string retention_finding(const std::vector<Retained>& all, const std::string& unit) {
  std::map<std::string, std::string> by_states;
  for (const Retained& one : all) {
    if (one.line.points.empty()) continue;
    const Lines::Point& half = *std::ranges::min_element(
        one.line.points, {}, [](const Lines::Point& point) { return std::abs(point.x - 0.5); });
    std::string& words = by_states[one.states];
    words += (words.empty() ? "" : ", ") + shown(half.y) +
             (zero_note(as_change(half.interval)).empty() ? "" : " (not told from 1)") + " with the " + one.line.name +
             " " + shown_percent(half.x);
  }
  std::string finding;
  for (const auto& [key, states] : kCutWords)
    if (const auto found = by_states.find(std::string(states)); found != by_states.end())
      finding += (finding.empty() ? "" : "; of ") + std::string(states) + ": \u00D7 " + found->second;
  return finding.empty() ? finding : "Perplexity where part of the " + unit + "s is kept, of " + finding + ".";
}

}  // namespace

Section retention_section(const ReportInputs& inputs) {
  Section section{"retention", "Kept bands", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kRetention)) {
    const JsonCursor root = output->root();
    const std::vector<Retained> all = read_retained(root);
    const std::string unit = root.at("unit").string();
    section.body += figure(retention_drawings(all, "retention-" + std::to_string(file++)),
                           "Perplexity when every layer keeps part of its spectrum (" + root.at("transform").string() +
                               " of " + root.at("key_space").string() + ", " + root.at("protocol").string() + ", " +
                               counted(root.at("units").unsigned_integer(1 << 24), unit) + "), relative to " +
                               perplexity_words(root, "ppl_full", "nll_full") +
                               " with whole spectra. Intervals are of 95 %; what goes beyond the axis is cut.",
                           root.at("command").string()) +
                    retention_table(all);
    if (std::string finding = retention_finding(all, unit); !finding.empty())
      section.findings.push_back(std::move(finding));
  }
  return section;
}

}  // namespace kvs
