#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "export/report/comparison.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/settings.h"

namespace kvs {
namespace {

/// A cache that more than doubles perplexity is of no use.
constexpr double kUseless = 1.0;
constexpr std::size_t kMaxNamed = 4;  // methods in a sentence

bool is_measured(const ComparisonCell& cell) { return cell.loss && cell.kl && cell.bytes && cell.error.empty(); }

/// Documents of the cells that stayed longest; what has fewer cannot be compared with them.
std::size_t max_documents(std::span<const ComparisonCell* const> cells) {
  std::size_t most = 0;
  for (const ComparisonCell* cell : cells)
    if (!cell->stopped) most = std::max(most, cell->documents);
  return most;
}

/// The measured cells of a budget, those of least divergence first.
std::vector<const ComparisonCell*> measured_cells(const Comparison& comparison, double budget) {
  std::vector<const ComparisonCell*> cells;
  for (const ComparisonCell& cell : comparison.cells)
    if (cell.budget == budget && is_measured(cell)) cells.push_back(&cell);
  std::ranges::stable_sort(cells, {}, [](const ComparisonCell* cell) { return *cell->kl; });
  return cells;
}

/// How a cell changes perplexity, with the interval that says how sure that is.
std::string cost_of(const ComparisonCell& cell) {
  return change_words(*cell.loss, cell.interval, cell.over_parts) +
         (!cell.interval && cell.documents == 1 ? " (one document, no interval)" : "");
}

/// "half", "a quarter", "34.4 %".
std::string size_words(double budget) {
  constexpr std::array<std::pair<double, const char*>, 4> kWords{
      {{0.75, "three quarters"}, {0.5, "half"}, {0.25, "a quarter"}, {0.125, "an eighth"}}};
  for (const auto& [share, words] : kWords)
    if (budget == share) return words;
  return shown_percent(budget);
}

std::string at_budget(const Comparison& comparison, double budget) {
  std::string usable, useless;
  std::size_t named = 0;
  const auto cells = measured_cells(comparison, budget);
  const std::size_t documents = max_documents(cells);
  for (const ComparisonCell* cell : cells) {
    if (*cell->loss > kUseless) {
      useless += (useless.empty() ? "" : ", ") + spoken(cell->label) + " (" + shown_change(*cell->loss) +
                 (cell->documents < documents ? ", on " + counted(cell->documents, "document") : "") + ")";
    } else if (!cell->stopped && cell->documents == documents && named++ < kMaxNamed) {
      const bool first = named == 1;
      usable += (first ? "perplexity changes with " : ", with ") + spoken(cell->label) + " by " + cost_of(*cell);
    }
  }
  if (!useless.empty()) useless = "not usable on this model without training: " + useless;
  const std::string words = usable + (usable.empty() || useless.empty() ? "" : "; ") + useless;
  const std::string where =
      !usable.empty() && documents < comparison.documents ? "on " + documents_of(comparison, documents) + ", " : "";
  return words.empty() ? words : "At " + size_words(budget) + " of the bytes, " + where + words + ".";
}

std::string smallest(const Comparison& comparison, double loss, std::optional<std::size_t> n) {
  if (!n)
    return "Of no cache of the front are the documents sure that it costs at most " + shown_percent(loss) +
           " of perplexity: their intervals reach beyond it.";
  const ComparisonCell& cell = comparison.cells[*n];
  if (!is_measured(cell)) return "";
  return "The smallest cache of the front that costs at most " + shown_percent(loss) + " of perplexity is " +
         spoken(cell.label) + " at " + shown_percent(*cell.bytes) +
         " of the bytes: " + perplexity_change(*cell.loss, cell.interval, cell.over_parts) + ".";
}

/// Calibrated settings against their papers' at the same bytes.
std::string gained(const Comparison& comparison) {
  std::size_t pairs = 0, better = 0, clear = 0;
  const ComparisonCell* best = nullptr;
  for (const ComparisonCell& cell : comparison.cells) {
    if (!cell.gain || !is_measured(cell)) continue;
    ++pairs;
    better += cell.gain->ppl < 0 ? 1 : 0;
    clear += cell.gain->ppl_interval && cell.gain->ppl_interval->second < 0 ? 1 : 0;
    if (*cell.loss <= kUseless && (best == nullptr || cell.gain->ppl < best->gain->ppl)) best = &cell;
  }
  if (pairs == 0) return "";
  const std::string words = "Calibration beats the settings of the paper in " + shown_count(better) + " of " +
                            counted(pairs, "pair") + " of the same size, clearly in " + shown_count(clear);
  if (best == nullptr || best->gain->ppl >= 0) return words + ".";
  return words + "; most for " + spoken(best->label) + " at " + shown_percent(best->budget) + ": " +
         perplexity_change(best->gain->ppl, best->gain->ppl_interval, best->gain->over_parts) + ".";
}

}  // namespace

std::vector<std::string> comparison_findings(const Comparison& comparison) {
  std::vector<std::string> findings;
  for (const double budget : comparison.budgets) findings.push_back(at_budget(comparison, budget));
  for (const std::string& verdict : comparison.verdicts) findings.push_back(verdict);
  if (comparison.verdicts.empty())
    for (const auto& [loss, cell] : comparison.smallest) findings.push_back(smallest(comparison, loss, cell));
  findings.push_back(gained(comparison));
  std::erase(findings, std::string());
  return findings;
}

}  // namespace kvs
