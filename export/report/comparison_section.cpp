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
/// A column in which nothing is said is left out.
Cell words_or_dash(const std::string& words) { return words.empty() ? Cell::missing() : Cell(words); }

std::string as_percent(double share) { return shown_tenths(share); }
std::string as_change(double change) { return shown_change(change); }
std::string as_number(double value) { return shown(value); }

Cell budget_cell(const ComparisonCell& cell) {
  return cell.budget > 0 ? Cell(shown_tenths(cell.budget), cell.budget) : Cell::missing();
}

std::string parts_note(bool over_parts) { return over_parts ? " (parts)" : ""; }

/// An interval of changes, which says so where it is over parts of documents.
Cell sampled_cell(const std::optional<std::pair<double, double>>& interval, bool over_parts) {
  Cell cell = interval_cell(interval);
  if (interval) cell.words += parts_note(over_parts);
  return cell;
}

/// What the intervals of a column are over. @param over_parts  of each interval
std::string samples_of(const std::vector<bool>& over_parts) {
  const auto parts = static_cast<std::size_t>(std::ranges::count(over_parts, true));
  if (parts == 0) return "over documents";
  return parts == over_parts.size() ? "over parts of documents"
                                    : "over documents, or where it says so over their parts";
}

std::string samples_of(const std::vector<const ComparisonCell*>& cells) {
  std::vector<bool> over_parts;
  for (const ComparisonCell* cell : cells)
    if (cell->interval) over_parts.push_back(cell->over_parts);
  return samples_of(over_parts);
}

/// The same of changes from other cells. @param change  one of a cell's
std::string samples_of(const std::vector<const ComparisonCell*>& cells,
                       std::optional<ComparisonChange> ComparisonCell::*change) {
  std::vector<bool> over_parts;
  for (const ComparisonCell* cell : cells)
    if (const auto& found = cell->*change; found && (found->ppl_interval || found->kl_interval))
      over_parts.push_back(found->over_parts);
  return samples_of(over_parts);
}

std::string told_cell(const ComparisonCell& cell) {
  return "KL divergence " + shown(*cell.kl) +
         (cell.loss ? ", " + perplexity_change(*cell.loss, cell.interval, cell.over_parts) : "") +
         (cell.settings.empty() ? "" : "; " + cell.settings) + "; " + (cell.calibrated ? "calibrated, " : "") +
         counted(cell.documents, "document");
}

/// Divergence as a multiple of that of the budget's best cache, with its interval.
Cell times_best(const ComparisonCell& cell) {
  if (!cell.loss_to_best) return Cell::missing();
  const ComparisonChange& loss = *cell.loss_to_best;
  std::string words = "×\u00A0" + shown(1 + loss.kl);
  if (loss.kl_interval)
    words += " (" + shown(1 + loss.kl_interval->first) + " to " + shown(1 + loss.kl_interval->second) + ")" +
             parts_note(loss.over_parts);
  return {words, loss.kl};
}

std::vector<TradePoint> compared_points(const Comparison& comparison) {
  const std::size_t most = max_scored(comparison);
  std::vector<TradePoint> points;
  for (const ComparisonCell& cell : comparison.cells)
    if (cell.kl && cell.bytes && (cell.documents == most || cell.front))
      points.push_back({.label = cell.label,
                        .method = cell.method == "full" && !cell.store.empty() ? "quantised alone" : cell.method,
                        .stored = !cell.store.empty(),
                        .bytes = *cell.bytes,
                        .loss = *cell.kl,
                        .told = told_cell(cell),
                        .interval = {},
                        .front = cell.front});
  return points;
}

std::string state_of(const ComparisonCell& cell) {
  if (!cell.error.empty()) return cell.error;
  const std::string fate = cell.front ? "front" : cell.stopped ? "stopped early" : "";
  return (cell.calibrated ? "calibrated" : "") + std::string(cell.calibrated && !fate.empty() ? ", " : "") + fate;
}

Markup cells_table(const std::string& caption, const std::vector<const ComparisonCell*>& cells) {
  Table table(caption, {{"Cache", false},
                        {"Budget"},
                        {"Bytes", true, "of the full cache"},
                        {"Perplexity", true, "change from the full cache's"},
                        {"95\u00A0%", true, "interval of the change, " + samples_of(cells)},
                        {"KL", true, "divergence from the full cache's predictions, nats a token"},
                        {"KL × best", true,
                         "relative to the best cache of the budget, with its 95\u00A0% interval, paired " +
                             samples_of(cells, &ComparisonCell::loss_to_best)},
                        {"Top-1", true, "tokens with the full cache's first choice"},
                        {"Retrieval", true, "questions answered"},
                        {"Log-lik.", true, "of the right answers, nats a token"},
                        {"Decode", true, "tokens a second"},
                        {"Documents", true, "on which it was scored"},
                        {"Note", false},
                        {"Settings", false}});
  for (const ComparisonCell* const one : cells) {
    const ComparisonCell& cell = *one;
    table.row({cell.label,
               budget_cell(cell),
               cell.bytes ? bytes_cell(*cell.bytes, cell.shared_bytes) : Cell::missing(),
               cell_of(cell.loss, as_change),
               sampled_cell(cell.interval, cell.over_parts),
               cell_of(cell.kl, as_number),
               times_best(cell),
               cell_of(cell.top1, as_percent),
               cell_of(cell.accuracy, as_percent),
               cell_of(cell.log_likelihood, as_number),
               cell_of(cell.speed, as_number),
               {shown_count(cell.documents), static_cast<double>(cell.documents)},
               words_or_dash(state_of(cell)),
               words_or_dash(cell.settings)},
              cell.front     ? "front-row"
              : cell.stopped ? "stopped"
                             : "");
  }
  return table.markup();
}

/// What a table of cells is called that were scored on fewer documents than others: most were stopped, some had no
/// time left.
std::string fewer_caption(const std::vector<const ComparisonCell*>& cells) {
  return std::string(std::ranges::all_of(cells, &ComparisonCell::stopped) ? "Stopped after " : "Scored on ") +
         counted(cells.front()->documents, "document") +
         ": these numbers compare with one another alone, not with those of more documents";
}

/// A table for each number of documents: what was scored on fewer compares with nothing else.
Markup cells_tables(const Comparison& comparison) {
  Markup tables;
  const auto groups = alike(comparison);
  for (const auto& cells : groups) {
    const std::size_t scored = cells.front()->documents;
    if (scored == 0)
      tables += cells_table("Not scored", cells);
    else if (&cells == &groups.front())
      tables += cells_table("Caches scored on " + documents_of(comparison, scored), cells);
    else
      tables += cells_table(fewer_caption(cells), cells);
  }
  return tables;
}

Markup gains_table(const Comparison& comparison) {
  std::vector<const ComparisonCell*> cells;
  for (const ComparisonCell& cell : comparison.cells)
    if (cell.gain) cells.push_back(&cell);
  const std::string samples = samples_of(cells, &ComparisonCell::gain);
  Table table("Calibrated settings against those of the paper, at the same bytes",
              {{"Cache", false},
               {"Budget"},
               {"Perplexity", true, "change from the paper's settings"},
               {"95\u00A0%", true, "interval of the change, paired " + samples},
               {"KL change", true, "of the divergence from the full cache's predictions"},
               {"95\u00A0% of KL", true, "interval of that change, paired " + samples},
               {"Documents", true, "that both were scored on"}});
  for (const ComparisonCell* const cell : cells) {
    const ComparisonChange& gain = *cell->gain;
    table.row({cell->label,
               budget_cell(*cell),
               {shown_change(gain.ppl), gain.ppl},
               sampled_cell(gain.ppl_interval, gain.over_parts),
               {shown_change(gain.kl), gain.kl},
               sampled_cell(gain.kl_interval, gain.over_parts),
               {shown_count(gain.documents), static_cast<double>(gain.documents)}});
  }
  return table.empty() ? Markup() : table.markup();
}

/// Whether the speeds beside a comparison are that comparison's own: a run before may have left them.
bool was_timed(const Output& comparison) {
  const JsonCursor root = comparison.root();
  return !root.has("timed") || root.at("timed").boolean();
}

/// Whether `named`, a path in a comparison, ends with `path` as seen from the comparison's folder: both may have moved
/// since together.
bool ends_in(const std::filesystem::path& named, const std::filesystem::path& path) {
  auto end = named.end();
  for (auto part = path.end(); part != path.begin();)
    if (end == named.begin() || *--part != *--end) return false;
  return !path.empty();
}

/// The config of a cell among the inputs, if it is there.
const Output* config_of(const ComparisonCell& cell, const Output& comparison, const ReportInputs& inputs) {
  if (cell.config.empty()) return nullptr;
  const Output* moved = nullptr;
  for (const Output* config : inputs.of(OutputKind::kConfig)) {
    if (is_same_path(config->path, cell.config)) return config;
    if (ends_in(cell.config, config->path.lexically_relative(comparison.path.parent_path()))) moved = config;
  }
  return moved;
}

/// Chosen cells by what they were chosen for: `named`, a share.
class Winners {
 public:
  void add(double share, const ComparisonCell& cell) {
    shares_.push_back(share);
    cells_.push_back(&cell);
  }

  Markup markup(const char* caption, const char* named) const {
    if (cells_.empty()) return {};
    Table table(caption, {{named},
                          {"Cache", false},
                          {"Bytes"},
                          {"Perplexity"},
                          {"95\u00A0%", true, "interval of the change, " + samples_of(cells_)},
                          {"Retrieval"},
                          {"Settings", false},
                          {"Config", false}});
    for (std::size_t n = 0; n < cells_.size(); ++n) {
      const ComparisonCell& cell = *cells_[n];
      table.row({{shown_tenths(shares_[n]), shares_[n]},
                 cell.label,
                 cell.bytes ? bytes_cell(*cell.bytes, cell.shared_bytes) : Cell::missing(),
                 cell_of(cell.loss, as_change),
                 sampled_cell(cell.interval, cell.over_parts),
                 cell_of(cell.accuracy, as_percent),
                 words_or_dash(cell.settings),
                 words_or_dash(cell.config)});
    }
    return table.markup();
  }

 private:
  std::vector<double> shares_;
  std::vector<const ComparisonCell*> cells_;
};

Markup winners(const Comparison& comparison, const Output& output, const ReportInputs& inputs) {
  Winners best, smallest;
  std::set<std::size_t> chosen;
  for (const auto& [budget, n] : comparison.best) {
    best.add(budget, comparison.cells[n]);
    chosen.insert(n);
  }
  for (const auto& [loss, n] : comparison.smallest) {
    if (!n) continue;
    smallest.add(loss, comparison.cells[*n]);
    chosen.insert(*n);
  }
  Markup commands;
  for (const std::size_t n : chosen)
    if (const Output* config = config_of(comparison.cells[n], output, inputs))
      commands += element("dt", config->name) +
                  element("dd", element("code", config->root().at("calibration").at("command").string()));
  if (!commands.empty())
    commands = folded("Commands of these configs", element("dl", {{"class", "commands"}}, commands));
  return best.markup("The best cache of each size", "Budget") +
         smallest.markup("The smallest cache of each loss", "Loss at most") + commands;
}

}  // namespace

Section comparison_section(const ReportInputs& inputs) {
  Section section{"comparison", "Comparison", {}, {}};
  std::size_t number = 0;
  const auto outputs = inputs.of(OutputKind::kComparison);
  for (const Output* output : outputs) {
    Comparison comparison = read_comparison(*output);
    for (const Output* speeds : inputs.of(OutputKind::kSpeeds))
      if (was_timed(*output) && is_same_path(speeds->path, speeds_beside(output->path)))
        add_speeds(*speeds, comparison);
    const std::string lead = outputs.size() > 1 ? output->name + ": " : "";
    const std::string extent =
        documents_of(comparison, max_scored(comparison)) + " of " + shown_count(comparison.tokens) + " tokens" +
        (comparison.full_ppl > 0 ? "; the full cache has perplexity " + shown(comparison.full_ppl, 4) : "");
    const std::vector<TradePoint> points = compared_points(comparison);
    if (outputs.size() > 1) section.body += heading(output->name);
    section.body += winners(comparison, *output, inputs);
    if (!points.empty())
      section.body += figure(
          tradeoff("comparison-" + std::to_string(number), "Bytes against KL divergence",
                   "Every cache compared by the bytes it holds and the KL divergence of its predictions from the full "
                   "cache's; the table below has the same numbers.",
                   divergence_scale(), points),
          text("Bytes against the KL divergence from the full cache's predictions, on " + extent +
               ". The line joins what no smaller cache beats; hollow marks hold quantised rows."),
          comparison.command, true);
    section.body += cells_tables(comparison) + gains_table(comparison);
    for (const std::string& finding : comparison_findings(comparison)) section.findings.push_back(lead + finding);
    ++number;
  }
  return section;
}

}  // namespace kvs
