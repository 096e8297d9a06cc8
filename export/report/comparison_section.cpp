#include <algorithm>
#include <filesystem>
#include <set>

#include "export/report/comparison.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"
#include "export/report/tradeoff.h"

namespace kvs {
namespace {

template <class Shown>
Cell cell_of(const std::optional<double>& value, Shown shown_as) {
  return value ? Cell(shown_as(*value), *value) : Cell::missing();
}
/// Returns a missing cell for empty words, so that a column without words is left out.
Cell words_or_dash(const std::string& words) { return words.empty() ? Cell::missing() : Cell(words); }
Cell share_cell(double share) { return {shown_tenths(share), share}; }
Cell number_cell(double value) { return {shown(value), value}; }
Cell count_cell(std::size_t count) { return {shown_count(count), static_cast<double>(count)}; }
Cell change_cell(const std::optional<double>& change) {
  return cell_of(change, [](double by) { return shown_change(by); });
}
Cell budget_cell(const ComparedCell& cell) { return cell.budget > 0 ? share_cell(cell.budget) : Cell::missing(); }
Cell held_cell(const ComparedCell& cell) {
  return cell.loss ? bytes_cell(cell.loss->bytes_ratio, static_cast<double>(cell.shared_bytes)) : Cell::missing();
}
Cell loss_cell(const ComparedCell& cell) {
  return cell.loss ? change_cell(cell.loss->ratio.change()) : Cell::missing();
}

std::string parts_note(Samples over) { return over == Samples::kParts ? " (parts)" : ""; }

/// Returns the cell of an interval of changes. The cell says if the interval is over parts of documents.
Cell sampled_cell(const Range& interval, Samples over) {
  Cell cell = interval_cell(interval);
  if (interval) cell.words += parts_note(over);
  return cell;
}
Cell loss_interval(const ComparedCell& cell) {
  if (!cell.loss || !cell.loss->ratio.ppl) return Cell::missing();
  return sampled_cell(cell.loss->ratio.change_interval(), cell.loss->ratio.over);
}

/// Returns in words which samples the intervals of a column are over.
std::string samples_of(const std::vector<Samples>& over) {
  const auto parts = static_cast<std::size_t>(std::ranges::count(over, Samples::kParts));
  if (parts == 0) return "over documents";
  return parts == over.size() ? "over parts of documents" : "over documents, or where it says so over their parts";
}

std::string samples_of(const std::vector<const ComparedCell*>& cells) {
  std::vector<Samples> over;
  for (const ComparedCell* cell : cells)
    if (cell->loss && cell->loss->ratio.interval) over.push_back(cell->loss->ratio.over);
  return samples_of(over);
}

/// Returns in words which samples the intervals of relative losses are over. @param loss  member of a cell
std::string samples_of(const std::vector<const ComparedCell*>& cells, std::optional<RelativeLoss> ComparedCell::*loss) {
  std::vector<Samples> over;
  for (const ComparedCell* cell : cells)
    if (const auto& found = cell->*loss; found && (found->ppl.interval || found->kl.interval))
      over.push_back(found->ppl.over);
  return samples_of(over);
}

std::string told_cell(const ComparedCell& cell) {
  const std::string settings = settings_of(cell);
  return "KL divergence " + shown(cell.loss->kl) + (cell.loss->ratio.ppl ? ", perplexity " + loss_words(cell) : "") +
         (settings.empty() ? "" : "; " + settings) + "; " + (cell.calibrated ? "calibrated, " : "") +
         counted(cell.documents, "document");
}

/// Returns the ratio of a cell's divergence to the divergence of the budget's best cache, with its interval.
Cell times_best(const ComparedCell& cell) {
  if (!cell.over_best) return Cell::missing();
  const SampledRatio& kl = cell.over_best->kl;
  std::string words = "×\u00A0" + shown(kl.mean);
  if (kl.interval)
    words += " (" + shown(kl.interval->first) + " to " + shown(kl.interval->second) + ")" +
             parts_note(cell.over_best->ppl.over);
  return {words, kl.mean - 1};
}

std::string state_of(const ComparedCell& cell) {
  if (cell.error) return *cell.error;
  const std::string fate = cell.front ? "front" : cell.stopped ? "stopped early" : "";
  return (cell.calibrated ? "calibrated" : "") + std::string(cell.calibrated && !fate.empty() ? ", " : "") + fate;
}

Markup cells_table(const std::string& caption, const std::vector<const ComparedCell*>& cells,
                   const std::optional<ComparisonSpeeds>& speeds) {
  Table table(caption, {{"Cache", false},
                        {"Budget"},
                        {"Bytes", true, "of the full cache"},
                        {"Perplexity", true, "change from the full cache's"},
                        {"95\u00A0%", true, "interval of the change, " + samples_of(cells)},
                        {"KL", true, "divergence from the full cache's predictions, nats a token"},
                        {"KL × best", true,
                         "relative to the best cache of the budget, with its 95\u00A0% interval, paired " +
                             samples_of(cells, &ComparedCell::over_best)},
                        {"Top-1", true, "tokens with the full cache's first choice"},
                        {"Retrieval", true, "questions answered"},
                        {"Log-lik.", true, "of the right answers, nats a token"},
                        {"Decode", true, "tokens a second"},
                        {"Documents", true, "on which it was scored"},
                        {"Note", false},
                        {"Settings", false}});
  for (const ComparedCell* const one : cells) {
    const ComparedCell& cell = *one;
    table.row({cell.label, budget_cell(cell), held_cell(cell), loss_cell(cell), loss_interval(cell),
               cell.loss ? number_cell(cell.loss->kl) : Cell::missing(), times_best(cell),
               cell.loss ? share_cell(cell.loss->top1) : Cell::missing(),
               cell.retrieval ? share_cell(cell.retrieval->accuracy) : Cell::missing(),
               cell.retrieval ? number_cell(cell.retrieval->log_likelihood) : Cell::missing(),
               cell_of(speed_of(cell, speeds), [](double speed) { return shown(speed); }), count_cell(cell.documents),
               words_or_dash(state_of(cell)), words_or_dash(settings_of(cell))},
              cell.front     ? "front-row"
              : cell.stopped ? "stopped"
                             : "");
  }
  return table.markup();
}

/// Returns the caption of a table of cells that were scored on fewer documents than others: cells that were stopped, or
/// that had no time left.
std::string fewer_caption(const std::vector<const ComparedCell*>& cells) {
  return std::string(std::ranges::all_of(cells, &ComparedCell::stopped) ? "Stopped after " : "Scored on ") +
         counted(cells.front()->documents, "document") +
         ": these numbers compare with one another alone, not with those of more documents";
}

/// Returns a table for each number of documents, as cells can only be compared on equally many documents.
Markup cells_tables(const ComparisonResult& result, const std::optional<ComparisonSpeeds>& speeds) {
  Markup tables;
  const auto groups = alike(result);
  for (const auto& cells : groups) {
    const std::size_t scored = cells.front()->documents;
    const std::string caption = scored == 0                 ? "Not scored"
                                : &cells == &groups.front() ? "Caches scored on " + documents_of(result, scored)
                                                            : fewer_caption(cells);
    tables += cells_table(caption, cells, speeds);
  }
  return tables;
}

Markup gains_table(const ComparisonResult& result) {
  std::vector<const ComparedCell*> cells;
  for (const ComparedCell& cell : result.cells)
    if (cell.over_standard) cells.push_back(&cell);
  const std::string samples = samples_of(cells, &ComparedCell::over_standard);
  Table table("Calibrated settings against those of the paper, at the same bytes",
              {{"Cache", false},
               {"Budget"},
               {"Perplexity", true, "change from the paper's settings"},
               {"95\u00A0%", true, "interval of the change, paired " + samples},
               {"KL change", true, "of the divergence from the full cache's predictions"},
               {"95\u00A0% of KL", true, "interval of that change, paired " + samples},
               {"Documents", true, "that both were scored on"}});
  for (const ComparedCell* const cell : cells) {
    const auto& [documents, ppl, kl] = *cell->over_standard;
    table.row({cell->label, budget_cell(*cell), change_cell(ppl.mean - 1),
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

/// Returns the config of a cell among the inputs, or nullptr.
const Output* config_of(const ComparedCell& cell, const Output& comparison, const ReportInputs& inputs) {
  if (!cell.config) return nullptr;
  const Output* moved = nullptr;
  for (const Output* config : inputs.of(OutputKind::kConfig)) {
    if (is_same_path(config->path, *cell.config)) return config;
    if (ends_in(*cell.config, config->path.lexically_relative(comparison.path.parent_path()))) moved = config;
  }
  return moved;
}

/// Returns a table of the chosen cells by the share that each was chosen for.
template <class Choice>
Markup winners_table(const ComparisonResult& result, const std::vector<Choice>& choices, double Choice::*share,
                     const char* caption, const char* named) {
  std::vector<const ComparedCell*> cells;
  for (const Choice& choice : choices)
    if (choice.cell) cells.push_back(&result.cells[*choice.cell]);
  if (cells.empty()) return {};
  Table table(caption, {{named},
                        {"Cache", false},
                        {"Bytes"},
                        {"Perplexity"},
                        {"95\u00A0%", true, "interval of the change, " + samples_of(cells)},
                        {"Retrieval"},
                        {"Settings", false},
                        {"Config", false}});
  for (const Choice& choice : choices) {
    if (!choice.cell) continue;
    const ComparedCell& cell = result.cells[*choice.cell];
    table.row({share_cell(choice.*share), cell.label, held_cell(cell), loss_cell(cell), loss_interval(cell),
               cell.retrieval ? share_cell(cell.retrieval->accuracy) : Cell::missing(),
               words_or_dash(settings_of(cell)), words_or_dash(cell.config.value_or(""))});
  }
  return table.markup();
}

Markup winners(const ComparisonResult& result, const Output& output, const ReportInputs& inputs) {
  std::set<std::size_t> chosen;
  for (const BestChoice& best : result.best)
    if (best.cell) chosen.insert(*best.cell);
  for (const SmallestChoice& smallest : result.smallest)
    if (smallest.cell) chosen.insert(*smallest.cell);
  Markup commands;
  for (const std::size_t n : chosen)
    if (const Output* config = config_of(result.cells[n], output, inputs))
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
  const std::vector<TradePoint> points = trade_points(result, told_cell);
  if (points.empty()) return {};
  const std::string extent = documents_of(result, result.max_documents()) + " of " + shown_count(result.tokens) +
                             " tokens" +
                             (result.full.ppl ? "; the full cache has perplexity " + shown(*result.full.ppl, 4) : "");
  return figure(tradeoff("comparison-" + std::to_string(number), "Bytes against KL divergence",
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
                    cells_tables(result, speeds_of(result, *output, inputs)) + gains_table(result);
    const std::string lead = outputs.size() > 1 ? output->name + ": " : "";
    for (const std::string& finding : comparison_findings(result)) section.findings.push_back(lead + finding);
  }
  return section;
}

}  // namespace kvs
