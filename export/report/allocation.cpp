// SPDX-License-Identifier: Apache-2.0
#include "results/allocation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "draw/svg.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"
#include "results/panels.h"

namespace kvs::inline report {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kContenders{
    {{"layers", "sizes by layer"}, {"uniform", "one size for all layers"}, {"standard", "the paper's setting"}}};

std::string contender_words(std::string_view name) {
  for (const auto& [key, words] : kContenders)
    if (name == key) return std::string(words);
  return std::string(name);
}

/// Returns true if a contender has the winner's settings.
bool is_same(const AllocationResult& of, const AllocationResult::Contender& other) {
  return other.parameters == of.contenders.front().parameters;
}

/// Returns the contenders that the winner was compared with.
std::vector<AllocationResult::Contender> losers(const AllocationResult& of) {
  std::vector<AllocationResult::Contender> all;
  std::ranges::copy_if(of.contenders, std::back_inserter(all), [](const auto& one) { return one.change.has_value(); });
  return all;
}

std::string won_words(const AllocationResult::Change& by) {
  return change_words(std::expm1(by.difference), by.interval);
}

/// Returns the members of the settings that differ between contenders and trials.
std::vector<std::string> varied(const AllocationResult& of) {
  std::vector<Json> lists;
  for (const auto& one : of.contenders) lists.push_back(one.parameters);
  for (const auto& one : of.trials) lists.push_back(one.parameters);
  std::vector<std::string> names;
  for (const auto& [name, value] : lists.front().items())
    if (std::ranges::any_of(lists, [&](const Json& list) { return !list.contains(name) || list.at(name) != value; }))
      names.push_back(name);
  return names;
}

std::string chosen_text(const Json& parameters, const std::vector<std::string>& names) {
  Json chosen = Json::object();
  for (const std::string& name : names)
    if (parameters.contains(name)) chosen[name] = parameters.at(name);
  return settings_text(chosen);
}

Markup contenders_table(const AllocationResult& of, const std::vector<std::string>& names, const std::string& file) {
  Table table(file + ": on documents held out",
              {{"Settings", false},
               {"Bytes", true, "most that a document held"},
               {"Perplexity", true, "\u00B1 its standard error"},
               {"Winner", true, "change of perplexity from this to the winner, the same documents"},
               {"95\u00A0%", true, "interval of the change, over documents"},
               {"Tried values", false}});
  for (const auto& [name, bytes, parameters, loss, change] : of.contenders) {
    const double growth = change ? std::expm1(change->difference) : 0;
    table.row({capitalised(contender_words(name)),
               {shown_count(bytes), static_cast<double>(bytes)},
               loss ? Cell(perplexity_words(loss->nll(), loss->nll_error), loss->nll()) : Cell::missing(),
               change ? Cell(shown_change(growth), growth) : Cell::missing(),
               interval_cell(change ? change->interval : std::nullopt),
               chosen_text(parameters, names)},
              &name == &of.contenders.front().name ? "front-row" : "");
  }
  return table.markup();
}

Markup screened_table(const AllocationResult& of, const std::vector<std::string>& names) {
  Table table("Settings that were screened",
              {{"Tried values", false},
               {"Documents", true, "on which it was measured before it was dropped"},
               {"KL", true, "mean divergence from the full cache's predictions, nats a token"}});
  for (const auto& [parameters, documents, divergence, error] : of.trials)
    table.row({chosen_text(parameters, names),
               {shown_count(documents), static_cast<double>(documents)},
               divergence ? Cell(shown(*divergence), *divergence) : Cell("NaN or infinity")});
  return folded(counted(of.trials.size(), "setting") + " screened", table.markup());
}

Markup contest_drawing(const AllocationResult& of, const std::string& id) {
  std::vector<IntervalRow> rows;
  for (const auto& one : losers(of))
    if (!is_same(of, one))
      rows.push_back({contender_words(one.name), std::expm1(one.change->difference), one.change->interval,
                      won_words(*one.change)});
  return draw::page_drawings(
      {.panels = {interval_panel("", "Winner against the others",
                                 "Change of perplexity from the other settings of the same bytes to the "
                                 "winner, with its 95 % interval over the documents held out.",
                                 "change of perplexity", rows)},
       .plot_height = interval_height(rows.size())},
      id);
}

std::string contest_finding(const AllocationResult& of, const std::string& file) {
  if (of.verdict) return file + ": " + *of.verdict + ", on " + counted(of.held_documents, "document") + " held out.";
  if (of.held_documents == 0) return file + ": no documents were held out, so nothing says whether its settings hold.";
  std::string words = file + ": on " + counted(of.held_documents, "document") +
                      " held out the least perplexity is that of " + contender_words(of.winner);
  const char* before = ": ";
  for (const auto& one : losers(of)) {
    words += before + (is_same(of, one) ? "the same settings as " + contender_words(one.name)
                                        : won_words(*one.change) + " against " + contender_words(one.name) +
                                              zero_note(one.change->interval));
    before = "; ";
  }
  return words + ".";
}

}  // namespace

Section allocation_section(const ReportInputs& inputs) {
  Section section{"budgets", "Calibrated to a budget", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kConfig)) {
    const JsonCursor calibration = output->root().at("calibration");
    if (!calibration.has("allocation")) continue;
    const auto found = from_json<AllocationResult>(calibration.at("allocation"));
    const std::vector<std::string> names = varied(found);
    if (!std::ranges::all_of(losers(found), [&](const auto& one) { return is_same(found, one); }))
      section.body += figure(
          contest_drawing(found, "budget-" + std::to_string(file++)),
          output->name + ": " + contender_words(found.winner) + " against the others of the same bytes, on " +
              counted(found.held_documents, "document") + " that nothing was chosen by. Below 0 the winner is better.",
          calibration.at("command").string());
    section.body += contenders_table(found, names, output->name) + screened_table(found, names);
    section.findings.push_back(contest_finding(found, output->name));
  }
  return section;
}

}  // namespace kvs::inline report
