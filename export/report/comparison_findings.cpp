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

/// A cache that more than doubles perplexity is useless.
constexpr double kUseless = 1.0;
constexpr std::size_t kMaxNamed = 4;  // methods in a sentence

bool is_measured(const ComparedCell& cell) { return cell.loss && cell.loss->ratio.ppl && !cell.error; }
double change_of(const ComparedCell& cell) { return *cell.loss->ratio.change(); }

/// Returns the maximum number of documents of a cell. Cells with fewer documents cannot be compared with it.
std::size_t max_documents(std::span<const ComparedCell* const> cells) {
  std::size_t most = 0;
  for (const ComparedCell* cell : cells)
    if (!cell->stopped) most = std::max(most, cell->documents);
  return most;
}

/// Returns the measured cells of a budget, least divergence first.
std::vector<const ComparedCell*> measured_cells(const ComparisonResult& result, double budget) {
  std::vector<const ComparedCell*> cells;
  for (const ComparedCell& cell : result.cells)
    if (cell.budget == budget && is_measured(cell)) cells.push_back(&cell);
  std::ranges::stable_sort(cells, {}, [](const ComparedCell* cell) { return cell->loss->kl; });
  return cells;
}

/// Returns the change of perplexity of a cell with its interval.
std::string cost_of(const ComparedCell& cell) {
  return loss_words(cell) + (!cell.loss->ratio.interval && cell.documents == 1 ? " (one document, no interval)" : "");
}

/// Returns a budget in words: "half", "a quarter", "34.4 %".
std::string size_words(double budget) {
  constexpr std::array<std::pair<double, const char*>, 4> kWords{
      {{0.75, "three quarters"}, {0.5, "half"}, {0.25, "a quarter"}, {0.125, "an eighth"}}};
  for (const auto& [share, words] : kWords)
    if (budget == share) return words;
  return shown_percent(budget);
}

std::string at_budget(const ComparisonResult& result, double budget) {
  std::string usable, useless;
  std::size_t named = 0;
  const auto cells = measured_cells(result, budget);
  const std::size_t documents = max_documents(cells);
  for (const ComparedCell* cell : cells) {
    if (change_of(*cell) > kUseless) {
      useless += (useless.empty() ? "" : ", ") + spoken(cell->label) + " (" + shown_change(change_of(*cell)) +
                 (cell->documents < documents ? ", on " + counted(cell->documents, "document") : "") + ")";
    } else if (!cell->stopped && cell->documents == documents && named++ < kMaxNamed) {
      const bool first = named == 1;
      usable += (first ? "perplexity changes with " : ", with ") + spoken(cell->label) + " by " + cost_of(*cell);
    }
  }
  if (!useless.empty()) useless = "not usable on this model without training: " + useless;
  const std::string words = usable + (usable.empty() || useless.empty() ? "" : "; ") + useless;
  const std::string where =
      !usable.empty() && documents < result.documents ? "on " + documents_of(result, documents) + ", " : "";
  return words.empty() ? words : "At " + size_words(budget) + " of the bytes, " + where + words + ".";
}

/// Compares calibrated settings with the papers' settings at the same bytes.
std::string gained(const ComparisonResult& result) {
  std::size_t pairs = 0, better = 0, clear = 0;
  const ComparedCell* best = nullptr;
  for (const ComparedCell& cell : result.cells) {
    if (!cell.over_standard || !is_measured(cell)) continue;
    const SampledRatio& ppl = cell.over_standard->ppl;
    ++pairs;
    better += ppl.mean < 1 ? 1 : 0;
    clear += ppl.interval && ppl.interval->second < 1 ? 1 : 0;
    if (change_of(cell) <= kUseless && (best == nullptr || ppl.mean < best->over_standard->ppl.mean)) best = &cell;
  }
  if (pairs == 0) return "";
  const std::string words = "Calibration beats the settings of the paper in " + shown_count(better) + " of " +
                            counted(pairs, "pair") + " of the same size, clearly in " + shown_count(clear);
  if (best == nullptr || best->over_standard->ppl.mean >= 1) return words + ".";
  const SampledRatio& ppl = best->over_standard->ppl;
  return words + "; most for " + spoken(best->label) + " at " + shown_percent(best->budget) + ": " +
         perplexity_change(ppl.mean - 1, as_change(ppl.interval), ppl.over == Samples::kParts) + ".";
}

}  // namespace

std::vector<std::string> comparison_findings(const ComparisonResult& result) {
  std::vector<std::string> findings;
  std::vector<double> budgets = result.budgets;
  std::ranges::sort(budgets, std::greater{});
  for (const double budget : budgets) findings.push_back(at_budget(result, budget));
  for (const BestChoice& best : result.best)
    findings.push_back("Best at " + shown_percent(best.budget) + " of the bytes: " + best.verdict);
  for (const SmallestChoice& smallest : result.smallest)
    findings.push_back("Smallest that costs at most " + shown_percent(smallest.loss) +
                       " of perplexity: " + smallest.verdict);
  if (result.left_out.verdict) findings.push_back(capitalised(*result.left_out.verdict) + ".");
  findings.push_back(gained(result));
  std::erase(findings, std::string());
  return findings;
}

}  // namespace kvs
