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

namespace kvs {
namespace {

constexpr std::uint64_t kMaxMeasured = 1ULL << 40;
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kContenders{
    {{"layers", "sizes by layer"}, {"uniform", "one size for all layers"}, {"standard", "the paper's setting"}}};

std::string contender_words(const JsonCursor& name) {
  for (const auto& [key, words] : kContenders)
    if (name.string() == key) return std::string(words);
  name.fail("layers, uniform or standard");
}

/// Of the winner from another contender, as a relative change of perplexity.
struct WonBy {
  std::string other;
  double change = 0;
  Range interval;
  bool same = false;  // the two have the same settings
};

struct Contest {
  std::string winner;
  std::size_t documents = 0;  // held out
  std::vector<WonBy> against;
};

Contest read_contest(const JsonCursor& allocation) {
  Contest contest{
      contender_words(allocation.at("winner")), allocation.at("held_documents").unsigned_integer(kMaxMeasured), {}};
  const JsonCursor contenders = allocation.at("contenders");
  for (std::size_t n = 0; n < contenders.array_size(); ++n) {
    const JsonCursor other = contenders.at(n);
    if (other.has("difference"))
      contest.against.push_back(
          {contender_words(other.at("name")), std::expm1(other.at("difference").real()), interval_of(other),
           other.at("parameters").value() == contenders.at(std::size_t{0}).at("parameters").value()});
  }
  return contest;
}

std::string won_words(const WonBy& by) { return change_words(by.change, by.interval); }

/// The members of the settings in which some of them differ: what was tried.
std::vector<std::string> varied(const std::vector<JsonCursor>& lists) {
  std::vector<std::string> names;
  for (const std::string& name : lists.front().keys())
    for (const JsonCursor& list : lists)
      if (!list.value().contains(name) || list.value().at(name) != lists.front().value().at(name)) {
        names.push_back(name);
        break;
      }
  return names;
}

std::string chosen_text(const JsonCursor& parameters, const std::vector<std::string>& names) {
  Json chosen = Json::object();
  for (const std::string& name : names)
    if (parameters.value().contains(name)) chosen[name] = parameters.value().at(name);
  return settings_text(chosen);
}

Cell loss_cell(const JsonCursor& contender) {
  if (!contender.has("nll_mean") && !contender.has("ppl")) return Cell::missing();
  const double nll =
      contender.has("nll_mean") ? contender.at("nll_mean").real() : std::log(contender.at("ppl").positive());
  return {perplexity_words(nll, contender.has("nll_error") ? contender.at("nll_error").real() : 0), nll};
}

Markup contenders_table(const JsonCursor& allocation, const std::vector<std::string>& names, const std::string& file) {
  Table table(file + ": on documents held out",
              {{"Settings", false},
               {"Bytes", true, "most that a document held"},
               {"Perplexity", true, "\u00B1 its standard error"},
               {"Winner", true, "change of perplexity from this to the winner, the same documents"},
               {"95\u00A0%", true, "interval of the change, over documents"},
               {"Tried values", false}});
  const JsonCursor contenders = allocation.at("contenders");
  for (std::size_t n = 0; n < contenders.array_size(); ++n) {
    const JsonCursor one = contenders.at(n);
    const double bytes = one.at("bytes").real();
    const bool lost = one.has("difference");
    const double change = lost ? std::expm1(one.at("difference").real()) : 0;
    table.row({capitalised(contender_words(one.at("name"))),
               {shown_count(static_cast<std::size_t>(bytes)), bytes},
               loss_cell(one),
               lost ? Cell(shown_change(change), change) : Cell::missing(),
               interval_cell(interval_of(one)),
               chosen_text(one.at("parameters"), names)},
              n == 0 ? "front-row" : "");
  }
  return table.markup();
}

Markup screened_table(const JsonCursor& trials, const std::vector<std::string>& names) {
  Table table("Settings that were screened",
              {{"Tried values", false},
               {"Documents", true, "on which it was measured before it was dropped"},
               {"KL", true, "mean divergence from the full cache's predictions, nats a token"}});
  for (std::size_t n = 0; n < trials.array_size(); ++n) {
    const JsonCursor trial = trials.at(n);
    const double documents = trial.at("documents").real();
    const bool is_measured = !trial.has("error");
    const double divergence = is_measured ? trial.at("divergence").real() : 0;
    table.row({chosen_text(trial.at("parameters"), names),
               {shown_count(static_cast<std::size_t>(documents)), documents},
               is_measured ? Cell(shown(divergence), divergence) : Cell("NaN or infinity")});
  }
  return folded(counted(trials.array_size(), "setting") + " screened", table.markup());
}

std::vector<std::string> tried_names(const JsonCursor& allocation) {
  std::vector<JsonCursor> lists;
  for (const char* member : {"contenders", "trials"})
    for (std::size_t n = 0; n < allocation.at(member).array_size(); ++n)
      lists.push_back(allocation.at(member).at(n).at("parameters"));
  return lists.empty() ? std::vector<std::string>() : varied(lists);
}

Markup contest_drawing(const Contest& contest, const std::string& id) {
  std::vector<IntervalRow> rows;
  for (const WonBy& by : contest.against)
    if (!by.same) rows.push_back({by.other, by.change, by.interval, won_words(by)});
  return draw::page_drawings(
      {.panels = {interval_panel("", "Winner against the others",
                                 "Change of perplexity from the other settings of the same bytes to the "
                                 "winner, with its 95 % interval over the documents held out.",
                                 "change of perplexity", rows)},
       .plot_height = interval_height(rows.size())},
      id);
}

std::string contest_finding(const Contest& contest, const std::string& file) {
  if (contest.documents == 0) return file + ": no documents were held out, so nothing says whether its settings hold.";
  std::string words = file + ": on " + counted(contest.documents, "document") +
                      " held out the least perplexity is that of " + contest.winner;
  for (const WonBy& by : contest.against)
    words += (&by == &contest.against.front() ? ": " : "; ") +
             (by.same ? "the same settings as " + by.other
                      : won_words(by) + " against " + by.other + zero_note(by.interval));
  return words + ".";
}

}  // namespace

Section allocation_section(const ReportInputs& inputs) {
  Section section{"budgets", "Calibrated to a budget", {}, {}};
  std::size_t file = 0;
  for (const Output* output : inputs.of(OutputKind::kConfig)) {
    const JsonCursor calibration = output->root().at("calibration");
    if (!calibration.has("allocation")) continue;
    const JsonCursor allocation = calibration.at("allocation");
    const Contest contest = read_contest(allocation);
    const std::vector<std::string> names = tried_names(allocation);
    if (!std::ranges::all_of(contest.against, &WonBy::same))
      section.body += figure(contest_drawing(contest, "budget-" + std::to_string(file++)),
                             output->name + ": " + contest.winner + " against the others of the same bytes, on " +
                                 counted(contest.documents, "document") +
                                 " that nothing was chosen by. Below 0 the winner is better.",
                             calibration.at("command").string());
    section.body += contenders_table(allocation, names, output->name) + screened_table(allocation.at("trials"), names);
    section.findings.push_back(allocation.has("verdict")
                                   ? output->name + ": " + allocation.at("verdict").string() + ", on " +
                                         counted(contest.documents, "document") + " held out."
                                   : contest_finding(contest, output->name));
  }
  return section;
}

}  // namespace kvs
