// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>

#include "core/nearest.h"
#include "export/report/comparison.h"
#include "export/report/markup.h"
#include "export/report/pareto.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs::inline report {
namespace {

template <class Shown>
Cell cell_of(const std::optional<double>& value, Shown shown_as) {
  return value ? Cell(shown_as(*value), *value) : Cell::missing();
}
/// Returns a missing cell for empty words, so that a column without words is left out.
Cell words_or_dash(const std::string& words) { return words.empty() ? Cell::missing() : Cell(words); }
Cell count_cell(std::size_t count) { return {shown_count(count), static_cast<double>(count)}; }
Cell budget_cell(const ComparedConfiguration& one) { return one.budget > 0 ? share_cell(one.budget) : Cell::missing(); }
Cell held_cell(const ComparedConfiguration& one) {
  return one.loss ? bytes_cell(one.loss->bytes_ratio, static_cast<double>(one.shared_bytes)) : Cell::missing();
}
Cell loss_cell(const ComparedConfiguration& one) {
  return one.loss ? change_cell(one.loss->ratio.change()) : Cell::missing();
}

std::string parts_note(Samples over) { return over == Samples::kParts ? " (parts)" : ""; }

/// Returns the cell of an interval of changes. The cell says if the interval is over parts of documents.
Cell sampled_cell(const Range& interval, Samples over) {
  Cell cell = interval_cell(interval);
  if (interval) cell.words += parts_note(over);
  return cell;
}
Cell loss_interval(const ComparedConfiguration& one) {
  if (!one.loss || !one.loss->ratio.ppl) return Cell::missing();
  return sampled_cell(one.loss->ratio.change_interval(), one.loss->ratio.over);
}

/// Returns in words which samples the intervals of a column are over.
std::string samples_of(const std::vector<Samples>& over) {
  const auto parts = static_cast<std::size_t>(std::ranges::count(over, Samples::kParts));
  if (parts == 0) return "over documents";
  return parts == over.size() ? "over parts of documents" : "over documents, or where it says so over their parts";
}

std::string samples_of(const ComparedList& configurations) {
  std::vector<Samples> over;
  for (const ComparedConfiguration* one : configurations)
    if (one->loss && one->loss->ratio.interval) over.push_back(one->loss->ratio.over);
  return samples_of(over);
}

/// Returns in words which samples the intervals of relative losses are over. @param loss  member of a configuration
std::string samples_of(const ComparedList& configurations, std::optional<RelativeLoss> ComparedConfiguration::*loss) {
  std::vector<Samples> over;
  for (const ComparedConfiguration* one : configurations)
    if (const auto& found = one->*loss; found && (found->ppl.interval || found->kl.interval))
      over.push_back(found->ppl.over);
  return samples_of(over);
}

std::string tooltip_of(const ComparedConfiguration& one) {
  const std::string settings = settings_of(one);
  return "KL divergence " + shown(one.loss->kl) + (one.loss->ratio.ppl ? ", perplexity " + loss_words(one) : "") +
         (settings.empty() ? "" : "; " + settings) + "; " + (one.calibrated ? "calibrated, " : "") +
         counted(one.documents, "document");
}

/// Returns the ratio of a configuration's divergence to the divergence of the budget's best cache, with its interval.
Cell times_best(const ComparedConfiguration& one) {
  if (!one.over_best) return Cell::missing();
  const SampledRatio& kl = one.over_best->kl;
  std::string words = "×\u00A0" + shown(kl.mean);
  if (kl.interval)
    words += " (" + shown(kl.interval->first) + " to " + shown(kl.interval->second) + ")" +
             parts_note(one.over_best->ppl.over);
  return {words, kl.mean - 1};
}

std::string state_of(const ComparedConfiguration& one) {
  if (one.error) return *one.error;
  const std::string fate = one.pareto_front ? "front" : one.stopped ? "stopped early" : "";
  return (one.calibrated ? "calibrated" : "") + std::string(one.calibrated && !fate.empty() ? ", " : "") + fate;
}

Cell quantile_cell(const ComparedConfiguration& one, double DivergenceTail::*quantile) {
  return one.loss && one.loss->tail ? number_cell(*one.loss->tail.*quantile) : Cell::missing();
}

Markup configurations_table(const std::string& caption, const ComparedList& configurations,
                            const std::optional<ComparisonSpeeds>& speeds) {
  Table table(caption, {{"Cache", false},
                        {"Form", false,
                         "in attention: attention reads the bytes; random access: every token decodes "
                         "alone; storage: decoded as a whole"},
                        {"Budget"},
                        {"Bytes", true, "of the full cache"},
                        {"Perplexity", true, "change from the full cache's"},
                        {"95\u00A0%", true, "interval of the change, " + samples_of(configurations)},
                        {"KL", true, "divergence from the full cache's predictions, nats a token"},
                        {"99\u00A0%", true, "of the tokens have a smaller divergence"},
                        {"99.9\u00A0%", true, "of the tokens have a smaller divergence"},
                        {"KL × best", true,
                         "relative to the best cache of the budget, with its 95\u00A0% interval, paired " +
                             samples_of(configurations, &ComparedConfiguration::over_best)},
                        {"Top-1", true, "tokens with the full cache's first choice"},
                        {"Retrieval", true, "questions answered"},
                        {"Log-lik.", true, "of the right answers, nats a token"},
                        {"Decode", true, "tokens a second"},
                        {"Runs in", false, "engines that execute it (docs/engines.md)"},
                        {"Note", false},
                        {"Settings", false}});
  for (const ComparedConfiguration* const compared : configurations) {
    const ComparedConfiguration& one = *compared;
    table.row({one.label, words_or_dash(one.form), budget_cell(one), held_cell(one), loss_cell(one), loss_interval(one),
               one.loss ? number_cell(one.loss->kl) : Cell::missing(), quantile_cell(one, &DivergenceTail::p99),
               quantile_cell(one, &DivergenceTail::p999), times_best(one),
               one.loss ? share_cell(one.loss->top1) : Cell::missing(),
               one.retrieval ? share_cell(one.retrieval->accuracy) : Cell::missing(),
               one.retrieval ? number_cell(one.retrieval->log_likelihood) : Cell::missing(),
               cell_of(speed_of(one, speeds), [](double speed) { return shown(speed); }),
               words_or_dash(listed(one.engines)), words_or_dash(state_of(one)), words_or_dash(settings_of(one))},
              one.pareto_front ? "front-row"
              : one.stopped    ? "stopped"
                               : "");
  }
  return table.markup();
}

/// Returns the caption of a table of configurations that were scored on fewer documents than others: configurations
/// that were stopped, or that had no time left.
std::string fewer_caption(const ComparedList& configurations) {
  return std::string(std::ranges::all_of(configurations, &ComparedConfiguration::stopped) ? "Stopped after "
                                                                                          : "Scored on ") +
         counted(configurations.front()->documents, "document") +
         ": these numbers compare with one another alone, not with those of more documents";
}

/// Returns a table for each number of documents, as configurations can only be compared on equally many documents.
Markup configurations_tables(const ComparisonResult& result, const std::optional<ComparisonSpeeds>& speeds) {
  Markup tables;
  const auto groups = alike(result);
  for (const auto& configurations : groups) {
    const std::size_t scored = configurations.front()->documents;
    if (scored == 0) {
      tables += folded(counted(configurations.size(), "cache") + " not scored",
                       configurations_table("Not scored", configurations, speeds));
      continue;
    }
    tables +=
        configurations_table(&configurations == &groups.front() ? "Caches scored on " + documents_of(result, scored)
                                                                : fewer_caption(configurations),
                             configurations, speeds);
  }
  return tables;
}

Markup gains_table(const ComparisonResult& result) {
  ComparedList configurations;
  for (const ComparedConfiguration& one : result.configurations)
    if (one.over_standard) configurations.push_back(&one);
  const std::string samples = samples_of(configurations, &ComparedConfiguration::over_standard);
  Table table("Calibrated settings against those of the paper, at the same bytes",
              {{"Cache", false},
               {"Budget"},
               {"Perplexity", true, "change from the paper's settings"},
               {"95\u00A0%", true, "interval of the change, paired " + samples},
               {"KL change", true, "of the divergence from the full cache's predictions"},
               {"95\u00A0% of KL", true, "interval of that change, paired " + samples},
               {"Documents", true, "that both were scored on"}});
  for (const ComparedConfiguration* const one : configurations) {
    const auto& [documents, ppl, kl] = *one->over_standard;
    table.row({one->label, budget_cell(*one), change_cell(ppl.mean - 1),
               sampled_cell(as_change(ppl.interval), ppl.over), change_cell(kl.mean - 1),
               sampled_cell(as_change(kl.interval), ppl.over), count_cell(documents)});
  }
  return table.empty() ? Markup() : table.markup();
}

/// Returns the speeds next to a comparison if they belong to it. An earlier run may have left others.
std::optional<ComparisonSpeeds> speeds_of(const ComparisonResult& result, const Output& comparison,
                                          const ReportInputs& inputs) {
  for (const Output* speeds : inputs.of(OutputKind::kSpeeds))
    if (result.timed && is_same_path(speeds->path, speeds_beside(comparison.path)))
      return from_json<ComparisonSpeeds>(speeds->root());
  return std::nullopt;
}

/// Returns true if `named`, a path in a comparison, ends with `path` relative to the comparison's folder. Both files
/// may have been moved together.
bool ends_in(const std::filesystem::path& named, const std::filesystem::path& path) {
  auto end = named.end();
  for (auto part = path.end(); part != path.begin();)
    if (end == named.begin() || *--part != *--end) return false;
  return !path.empty();
}

/// Returns the config of a configuration among the inputs, or nullptr.
const Output* config_of(const ComparedConfiguration& one, const Output& comparison, const ReportInputs& inputs) {
  if (!one.config) return nullptr;
  const Output* moved = nullptr;
  for (const Output* config : inputs.of(OutputKind::kConfig)) {
    if (is_same_path(config->path, *one.config)) return config;
    if (ends_in(*one.config, config->path.lexically_relative(comparison.path.parent_path()))) moved = config;
  }
  return moved;
}

/// Returns a table of the chosen configurations by the share that each was chosen for.
template <class Choice>
Markup winners_table(const ComparisonResult& result, const std::vector<Choice>& choices, double Choice::*share,
                     const char* caption, const char* named) {
  ComparedList configurations;
  for (const Choice& choice : choices)
    if (choice.configuration) configurations.push_back(&result.configurations[*choice.configuration]);
  if (configurations.empty()) return {};
  Table table(caption, {{named},
                        {"Cache", false},
                        {"Bytes"},
                        {"Perplexity"},
                        {"95\u00A0%", true, "interval of the change, " + samples_of(configurations)},
                        {"Retrieval"},
                        {"Settings", false},
                        {"Config", false}});
  for (const Choice& choice : choices) {
    if (!choice.configuration) continue;
    const ComparedConfiguration& one = result.configurations[*choice.configuration];
    table.row({share_cell(choice.*share), one.label, held_cell(one), loss_cell(one), loss_interval(one),
               one.retrieval ? share_cell(one.retrieval->accuracy) : Cell::missing(), words_or_dash(settings_of(one)),
               words_or_dash(one.config.value_or(""))});
  }
  return table.markup();
}

Markup winners(const ComparisonResult& result, const Output& output, const ReportInputs& inputs) {
  std::set<std::size_t> chosen;
  for (const BestChoice& best : result.best)
    if (best.configuration) chosen.insert(*best.configuration);
  for (const SmallestChoice& smallest : result.smallest)
    if (smallest.configuration) chosen.insert(*smallest.configuration);
  Markup commands;
  for (const std::size_t n : chosen)
    if (const Output* config = config_of(result.configurations[n], output, inputs))
      commands += element("dt", config->name) +
                  element("dd", element("code", config->root().at("calibration").at("command").string()));
  if (!commands.empty())
    commands = folded("Commands of these configs", element("dl", {{"class", "commands"}}, commands));
  return winners_table(result, result.best, &BestChoice::budget, "The best cache of each size", "Budget") +
         winners_table(result, result.smallest, &SmallestChoice::loss, "The smallest cache of each loss",
                       "Loss at most") +
         commands;
}

Markup comparison_figure(const ComparisonResult& result, std::size_t number) {
  const std::vector<TradePoint> points = trade_points(result, tooltip_of);
  if (points.empty()) return {};
  const std::string extent = documents_of(result, result.max_documents()) + " of " + shown_count(result.tokens) +
                             " tokens" +
                             (result.full.ppl ? "; the full cache has perplexity " + shown(*result.full.ppl, 4) : "");
  return figure(
      pareto_figure("comparison-" + std::to_string(number), "Bytes against KL divergence",
                    "Every cache compared by the bytes it holds and the KL divergence of its predictions from the "
                    "full cache's; the table below has the same numbers.",
                    divergence_scale(), points),
      text("Bytes against the KL divergence from the full cache's predictions, on " + extent +
           ". The line joins what no smaller cache beats; hollow marks hold quantised rows."),
      result.head.command, true);
}

}  // namespace

Section comparison_section(const ReportInputs& inputs) {
  Section section{"comparison", "Comparison", {}, {}};
  std::size_t number = 0;
  const auto outputs = inputs.of(OutputKind::kComparison);
  for (const Output* output : outputs) {
    const auto result = from_json<ComparisonResult>(output->root());
    if (outputs.size() > 1) section.body += heading(output->name);
    section.body += winners(result, *output, inputs) + comparison_figure(result, number++) +
                    configurations_tables(result, speeds_of(result, *output, inputs)) + gains_table(result);
    const std::string lead = outputs.size() > 1 ? output->name + ": " : "";
    for (const std::string& finding : comparison_findings(result)) section.findings.push_back(lead + finding);
  }
  return section;
}

}  // namespace kvs::inline report
