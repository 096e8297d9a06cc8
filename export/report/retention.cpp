#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "calibrate/config/config_lists.h"
#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"
#include "results/retention_chart.h"

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

std::vector<KeptBandCurve> read_curves(const JsonCursor& root) {
  const std::vector<double> shares = reals(root.at("shares"));
  std::vector<KeptBandCurve> all;
  for (std::size_t n = 0; n < root.at("curves").array_size(); ++n) {
    const JsonCursor curve = root.at("curves").at(n), ratio = curve.at("ratio"), interval = curve.at("interval");
    for (const JsonCursor& list : {ratio, interval}) expect_length(list, shares.size(), "shares");
    words_of(curve.at("states"), kCutWords);
    KeptBandCurve& one =
        all.emplace_back(KeptBandCurve{curve.at("states").string(), words_of(curve.at("band"), kKeptWords)});
    for (std::size_t share = 0; share < shares.size(); ++share) {
      if (ratio.at(share).is_null()) continue;  // beyond a double
      one.values.push_back({shares[share], ratio.at(share).positive(), range_of(interval.at(share))});
    }
    std::ranges::sort(one.values, {}, &KeptBandCurve::Value::share);
  }
  return all;
}

std::string cut_words(const KeptBandCurve& curve) {
  return std::string(std::ranges::find(kCutWords, curve.states, &decltype(kCutWords)::value_type::first)->second);
}

Markup retention_table(const std::vector<KeptBandCurve>& all) {
  Table table("Perplexity relative to whole spectra",
              {{"Kept", false}, {"Of", false}, {"Share"}, {"Perplexity \u00D7"}, {"95\u00A0%", true, "of the change"}});
  for (const KeptBandCurve& one : all)
    for (const auto& [share, ratio, interval] : one.values) {
      table.row({one.band,
                 cut_words(one),
                 {shown_percent(share), share},
                 {shown(ratio), ratio},
                 interval_cell(as_change(interval))});
    }
  return folded("All values as a table", table.markup());
}

/// What the halves of the spectrum are worth: of each curve the share that is nearest to a half.
std::string retention_finding(const std::vector<KeptBandCurve>& all, const std::string& unit) {
  std::map<std::string, std::string> by_states;
  for (const KeptBandCurve& one : all) {
    if (one.values.empty()) continue;
    const KeptBandCurve::Value& half = *std::ranges::min_element(
        one.values, {}, [](const KeptBandCurve::Value& value) { return std::abs(value.share - 0.5); });
    std::string& words = by_states[cut_words(one)];
    words += (words.empty() ? "" : ", ") + shown(half.ratio) +
             (zero_note(as_change(half.interval)).empty() ? "" : " (not told from 1)") + " with the " + one.band + " " +
             shown_percent(half.share);
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
    const std::vector<KeptBandCurve> all = read_curves(root);
    const draw::Chart chart = retention_chart("", all);
    const std::string unit = root.at("unit").string();
    section.body += figure(page_drawings(chart, "retention-" + std::to_string(file++)) + page_legend(chart),
                           "Perplexity when every layer keeps part of its spectrum (" + root.at("transform").string() +
                               " of " + root.at("key_space").string() + ", " + root.at("protocol").string() + ", " +
                               counted(root.at("units").unsigned_integer(1 << 24), unit) + "), relative to " +
                               perplexity_words(root, "ppl_full", "nll_full") +
                               " with whole spectra. Bands are intervals of 95 %; what goes beyond the axis is cut.",
                           root.at("command").string()) +
                    retention_table(all);
    if (std::string finding = retention_finding(all, unit); !finding.empty())
      section.findings.push_back(std::move(finding));
  }
  return section;
}

}  // namespace kvs
