#include "calibrate/compare/comparison_result.h"

#include <algorithm>

#include "calibrate/compare/calibration.h"
#include "calibrate/compare/choices.h"
#include "calibrate/compare/evidence.h"
#include "eval/cache_quality.h"
#include "io/finite.h"
#include "results/comparison_words.h"

namespace kvs {
namespace {

std::optional<std::string> text_or_none(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

ScoredLoss scored_loss(const CellResult& result, const ModelConfig& model, std::size_t window) {
  const CacheQuality found = cache_quality(result.sum, model, window);
  const LossDifferences lost = from_full(result);
  const SampledRatio ratio = ratio_of(lost.nll, lost.of_parts);
  const PerplexityRatio& exact = found.loss->ratio;
  return {.bytes_ratio = found.bytes_ratio,
          .tokens_scored = found.tokens_scored,
          .ppl = found.ppl,
          .nll_mean = found.nll_mean,
          .kl = found.loss->kl,
          .top1 = found.loss->top1,
          .ratio = {ratio.interval, ratio.over, exact.ppl, exact.nll_difference}};
}

ComparedCell compared_cell(const CompareCell& cell, const CellResult& result, std::span<const double> budgets,
                           const ModelConfig& model, std::size_t window) {
  ComparedCell compared{.label = cell.label,
                        .method = cell.method,
                        .type = text_or_none(cell.type),
                        .budget = cell.budget == 0 ? budgets.front() : cell.budget,
                        .settings = cell.settings,
                        .config = text_or_none(cell.config),
                        .calibrated = cell.calibrated,
                        .shared_bytes = cell.shared_bytes,
                        .documents = result.scores.kl.size(),
                        .stopped = result.stopped,
                        .error = text_or_none(cell.error.empty() ? result.error : cell.error)};
  if (cell.needs > 0) compared.needs = cell.needs;
  if (compared.documents == 0) {
    if (!compared.error) compared.error = kNoTimeToScore;
    return compared;
  }
  compared.loss = scored_loss(result, model, window);
  if (!cell.config.empty())
    if (const double holding = min_holding(budgets, compared.loss->bytes_ratio); holding > 0) compared.budget = holding;
  return compared;
}

/// Returns true if a cell has its paper's default settings and `calibrated` is the same cache with settings chosen on a
/// text.
bool is_standard_of(const ComparedCell& cell, const ComparedCell& calibrated) {
  return !cell.calibrated && !cell.config && cell.loss && cell.method == calibrated.method &&
         cell.type == calibrated.type && cell.budget == calibrated.budget;
}

/// Returns the perplexity and divergence of a cell relative to another cell on the documents that both have.
RelativeLoss relative_to(const CellResult& result, const CellResult& other) {
  const LossDifferences found = from_other(result, other);
  return {found.documents, ratio_of(found.nll, found.of_parts), ratio_of(found.kl, found.of_parts)};
}

/// Sets the gain of each calibrated cell over its paper's default settings at the same budget.
void add_gains(std::vector<ComparedCell>& cells, std::span<const CellResult> results) {
  for (std::size_t n = 0; n < cells.size(); ++n) {
    if (!cells[n].calibrated || !cells[n].loss) continue;
    for (std::size_t other = 0; other < cells.size(); ++other)
      if (is_standard_of(cells[other], cells[n])) cells[n].over_standard = relative_to(results[n], results[other]);
  }
}

/// Sets the loss of each cell relative to the cell of least divergence at its budget.
void add_losses(std::vector<ComparedCell>& cells, std::span<const BestChoice> best,
                std::span<const CellResult> results) {
  for (std::size_t n = 0; n < cells.size(); ++n)
    for (const BestChoice& of : best)
      if (cells[n].loss && of.budget == cells[n].budget && of.leader && *of.leader != n)
        cells[n].over_best = relative_to(results[n], results[*of.leader]);
}

/// Returns calibrations in words: "elitekv to 50 %, 25 %; transform to 12.5 %".
std::string calibrations_text(std::span<const LeftOut::Calibration> calibrations) {
  std::string text, last;
  for (const auto& [label, budget] : calibrations) {
    const std::string share = text_of("%.3g %%", 100 * budget);
    text += label == last ? ", " + share : (text.empty() ? "" : "; ") + label + " to " + share;
    last = label;
  }
  return text;
}

/// Returns what the time limit left out, also in words: calibrations, the number of cells that were not scored, and the
/// number of cells that were scored on fewer documents without being dominated.
LeftOut left_out(const ComparisonResult& result) {
  LeftOut left;
  const std::size_t most = result.max_documents();
  for (const ComparedCell& cell : result.cells) {
    if (cell.error == kNoTimeToScore) ++left.unscored;
    if (cell.loss && cell.documents < most && !cell.stopped) ++left.shortened;
    if (cell.error == kNoTimeToCalibrate) left.calibrations.push_back({cell.label, cell.budget});
  }
  std::string words;
  const auto add = [&](const std::string& what) { words += (words.empty() ? " " : "; ") + what; };
  if (!left.calibrations.empty()) add("calibrating " + calibrations_text(left.calibrations));
  if (left.unscored > 0)
    add("scoring " + std::to_string(left.unscored) + " of " + std::to_string(result.cells.size()) + " cells");
  if (left.shortened > 0) add("scoring " + std::to_string(left.shortened) + " on as many documents as the others");
  if (!words.empty()) left.verdict = "no time was left for" + words;
  return left;
}

/// Returns the full cache's perplexity on the documents of the cell that was scored on the most.
std::optional<double> full_ppl(std::span<const CellResult> results) {
  const auto longest =
      std::ranges::max_element(results, {}, [](const CellResult& one) { return one.scores.kl.size(); });
  if (longest == results.end() || longest->scores.kl.empty()) return std::nullopt;
  return if_finite(longest->sum.full->sum.perplexity());
}

}  // namespace

ComparisonResult comparison_result(std::span<const CompareCell> cells, std::span<const CellResult> results,
                                   const ComparisonGoals& goals, const ModelConfig& model, std::size_t window) {
  ComparisonResult result{.tokens = window, .full = {full_ppl(results)}};
  result.budgets.assign(goals.budgets.begin(), goals.budgets.end());
  std::vector<CellScores> scores;
  for (std::size_t n = 0; n < cells.size(); ++n) {
    result.cells.push_back(compared_cell(cells[n], results[n], goals.budgets, model, window));
    scores.push_back(results[n].scores);
  }
  for (const std::size_t n : pareto_front(scores)) result.cells[n].front = true;
  add_gains(result.cells, results);
  const ScoredCells scored{cells, results, result.cells};
  result.best = best_choices(scored, goals.budgets);
  result.smallest = smallest_choices(scored, goals.losses);
  add_losses(result.cells, result.best, results);
  result.left_out = left_out(result);
  return result;
}

}  // namespace kvs
