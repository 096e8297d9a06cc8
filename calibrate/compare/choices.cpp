#include "calibrate/compare/choices.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/compare/calibration.h"
#include "calibrate/compare/evidence.h"
#include "calibrate/compare/racing.h"
#include "eval/paired_difference.h"
#include "results/comparison_words.h"

namespace kvs {
namespace {

constexpr double kRoundedShare = 1 + 1e-9;

using Cells = std::vector<std::size_t>;

/// Returns a cell's label and size: "h2o + q8_0 (24.8 %)".
std::string name_of(const ComparedCell& cell) {
  return cell.label + text_of(" (%.1f %%)", 100 * cell.loss->bytes_ratio);
}

/// Returns a cell's name and scores: "h2o + q8_0 (24.8 %), perplexity × 1.0184 (0.9997–1.0367), KL 0.0236".
std::string described(const ComparedCell& cell) {
  const ScoredLoss::Ratio& ratio = cell.loss->ratio;
  return name_of(cell) + ", perplexity × " + times_text(ratio) + interval_text(ratio.interval, "%.4f") +
         text_of(", KL %.4f", cell.loss->kl);
}

/// Returns a divergence relative to another cell's: "KL × 0.45 (0.41–0.5) of NAME's over 8 documents".
std::string relative_text(const SampledRatio& kl, const ComparedCell& other, const LossDifferences& differences) {
  return text_of("KL × %.3g", kl.mean) + interval_text(kl.interval, "%.3g") + " of " + name_of(other) + "'s over " +
         samples_text(differences);
}

/// Returns the scored cells of at most `budget`.
Cells cells_within(const ScoredCells& scored, double budget) {
  Cells found;
  for (std::size_t n = 0; n < scored.cells.size(); ++n)
    if (const auto& loss = scored.compared[n].loss; loss && loss->bytes_ratio <= budget * kRoundedShare)
      found.push_back(n);
  return found;
}

/// Returns the cells that were scored on the most documents, sorted by divergence.
Cells rivals(const ScoredCells& scored, const Cells& cells) {
  std::size_t most = 1;
  for (const std::size_t n : cells) most = std::max(most, scored.results[n].scores.kl.size());
  Cells found;
  std::ranges::copy_if(cells, std::back_inserter(found),
                       [&](std::size_t n) { return scored.results[n].scores.kl.size() == most; });
  std::ranges::stable_sort(found, {}, [&](std::size_t n) { return mean_kl(scored.results[n].scores); });
  return found;
}

/// Returns the number of cells of a budget that no time was left to score.
std::size_t left_behind(const ScoredCells& scored, double budget) {
  return static_cast<std::size_t>(std::ranges::count_if(scored.compared, [&](const ComparedCell& cell) {
    return cell.budget == budget && (cell.error == kNoTimeToScore || cell.error == kNoTimeToCalibrate);
  }));
}

/// Explains why a budget has no best cell: no time was left for its cells, or all cells need more bytes. In the second
/// case, the text names the nearest cell.
std::string unreached_text(const ScoredCells& scored, double budget) {
  if (left_behind(scored, budget) > 0) return "no time was left to score what would reach it";
  const ComparedCell* nearest = nullptr;
  double least = 0;
  for (const ComparedCell& cell : scored.compared) {
    const std::optional<double> share = cell.loss ? cell.loss->bytes_ratio : cell.needs;
    if (!share || (nearest != nullptr && *share >= least)) continue;
    nearest = &cell;
    least = *share;
  }
  if (nearest == nullptr) return "nothing reaches it";
  return "nothing reaches it; nearest is " + nearest->label + text_of(" with %.3g %%", 100 * least);
}

/// Chooses among the cells of one budget.
class BestOfBudget {
 public:
  BestOfBudget(const ScoredCells& scored, double budget)
      : scored_(scored), within_(cells_within(scored, budget)), rivals_(rivals(scored, within_)) {}

  BestChoice choice(double budget) const {
    BestChoice choice{.budget = budget, .unscored = left_behind(scored_, budget)};
    if (rivals_.empty()) {
      choice.verdict = unreached_text(scored_, budget);
      return choice;
    }
    choice.leader = rivals_.front();
    choice.documents = documents_of(rivals_.front());
    decide(rivals_.front(), choice);
    if (choice.unscored > 0)
      choice.verdict += "; no time was left to try " + std::to_string(choice.unscored) +
                        (choice.unscored == 1 ? " other" : " others") + " of this budget";
    return choice;
  }

 private:
  const ComparedCell& cell(std::size_t n) const { return scored_.compared[n]; }
  LossDifferences between(std::size_t n, std::size_t other) const {
    return from_other(scored_.results[n], scored_.results[other]);
  }
  std::size_t documents_of(std::size_t n) const { return scored_.results[n].scores.kl.size(); }
  /// Adds the difference of cell n from another cell to the evidence of the choice. Returns it in words.
  std::string supported(std::size_t n, std::size_t other, BestChoice& choice) const {
    const LossDifferences differences = between(n, other);
    choice.kl = {ratio_of(differences.kl, differences.of_parts), other};
    return relative_text(choice.kl->ratio, cell(other), differences);
  }

  void decide(std::size_t leader, BestChoice& choice) const {
    const std::optional<std::size_t> next = next_to(leader);
    if (next && between(leader, *next).kl.size() < 2) {
      choice.verdict = "cannot be said of one sample; the least divergence is that of " + described(cell(leader));
      return;
    }
    const Cells alike = alike_to(leader);
    choice.alike = alike;
    std::size_t chosen = leader;
    for (const std::size_t n : alike)
      if (parts_of(scored_.cells[n]) < parts_of(scored_.cells[chosen])) chosen = n;
    choice.cell = chosen;
    choice.verdict =
        described(cell(chosen)) + ": " + (next ? reason(leader, chosen, *next, alike, choice) : "no other was scored");
  }

  /// Returns the cells that are not clearly behind the leader: its rivals, then cells that have fewer documents because
  /// the time ended.
  Cells alike_to(std::size_t leader) const {
    Cells others(rivals_.begin() + 1, rivals_.end());
    std::ranges::copy_if(within_, std::back_inserter(others), [&](std::size_t n) {
      return documents_of(n) < documents_of(leader) && !scored_.results[n].stopped && between(n, leader).kl.size() > 1;
    });
    std::erase_if(others, [&](std::size_t n) {
      const LossDifferences differences = between(n, leader);
      return ratio_of(differences.kl, differences.of_parts).is_above();
    });
    return others;
  }

  /// Returns the second of the rivals. If the leader has no rivals, returns the cell nearest to it on the documents
  /// that both have.
  std::optional<std::size_t> next_to(std::size_t leader) const {
    if (rivals_.size() > 1) return rivals_[1];
    std::optional<std::size_t> nearest;
    double least = 0;
    for (const std::size_t n : within_) {
      const double ratio = n == leader ? 0 : paired_mean(between(n, leader).kl).mean;
      if (n == leader || (nearest && ratio >= least)) continue;
      nearest = n;
      least = ratio;
    }
    return nearest;
  }

  std::string reason(std::size_t leader, std::size_t chosen, std::size_t next, const Cells& alike,
                     BestChoice& choice) const {
    if (chosen != leader) return not_told(chosen, leader, "", choice) + ", and the plainer: chosen";
    if (!alike.empty()) {
      const std::string others = alike.size() == 1 ? "" : " and " + std::to_string(alike.size() - 1) + " more";
      return not_told(leader, alike.front(), others + ", none of which is plainer", choice);
    }
    const std::string fewer = rivals_.size() > 1 ? "" : ", which was scored on fewer";
    const std::string support = supported(leader, next, choice);
    return choice.kl->ratio.is_clear()
               ? support + ", the next" + fewer
               : "not distinguishable from " + name_of(cell(next)) + fewer + " (" + support + ")";
  }

  /// Returns "not distinguishable from NAME", then `more` and the evidence. The mean KL may differ in the other
  /// direction than most documents do.
  std::string not_told(std::size_t n, std::size_t other, const std::string& more, BestChoice& choice) const {
    const std::string support = supported(n, other, choice);
    const bool lower = mean_kl(scored_.results[n].scores) < mean_kl(scored_.results[other].scores);
    const std::string against = choice.kl->ratio.is_clear() && documents_of(n) == documents_of(other)
                                    ? std::string(", but the mean KL is ") + (lower ? "lower" : "higher")
                                    : "";
    return "not distinguishable from " + name_of(cell(other)) + more + " (" + support + against + ")";
  }

  const ScoredCells& scored_;
  Cells within_, rivals_;
};

/// Returns the upper end of a cell's interval as a relative change of perplexity; nothing if the cell has no interval.
std::optional<double> max_loss(const ComparedCell& cell) {
  const auto& interval = cell.loss->ratio.interval;
  return interval ? std::optional(interval->second - 1) : std::nullopt;
}

std::string over_text(const ScoredCells& scored, std::size_t n) {
  return " over " + samples_text(from_full(scored.results[n]));
}

SmallestChoice smallest_choice(const ScoredCells& scored, double loss) {
  std::optional<std::size_t> smallest, nearest;
  for (std::size_t n = 0; n < scored.cells.size(); ++n) {
    const ComparedCell& cell = scored.compared[n];
    if (!cell.front) continue;
    const auto most = max_loss(cell);
    if (!most) continue;
    if (!nearest || *most < *max_loss(scored.compared[*nearest])) nearest = n;
    const bool less = !smallest || cell.loss->bytes_ratio < scored.compared[*smallest].loss->bytes_ratio;
    if (*most <= loss && less) smallest = n;
  }
  if (!nearest) return {.loss = loss, .verdict = "cannot be said: no cache has an interval"};
  const std::size_t named = smallest.value_or(*nearest);
  const std::string text = described(scored.compared[named]) + over_text(scored, named);
  return {.loss = loss,
          .cell = smallest,
          .documents = scored.results[named].scores.kl.size(),
          .verdict = smallest
                         ? text
                         : "no cache of the front is known to cost so little; nearest is " + text +
                               text_of(", whose interval ends at %+.3g %%", 100 * *max_loss(scored.compared[named]))};
}

}  // namespace

Parts parts_of(const CompareCell& cell) {
  const Method* const method = find_method(cell.method);
  if (method == nullptr || method->make == nullptr) return Parts::kFactors;
  if (cell.calibrated || !cell.config.empty()) return Parts::kCalibrated;
  if (method == &kFullMethod) return Parts::kStorage;
  return cell.type.empty() ? Parts::kMethod : Parts::kComposed;
}

std::vector<BestChoice> best_choices(const ScoredCells& scored, std::span<const double> budgets) {
  std::vector<BestChoice> all;
  for (const double budget : budgets) all.push_back(BestOfBudget(scored, budget).choice(budget));
  return all;
}

std::vector<SmallestChoice> smallest_choices(const ScoredCells& scored, std::span<const double> losses) {
  std::vector<SmallestChoice> all;
  for (const double loss : losses) all.push_back(smallest_choice(scored, loss));
  return all;
}

}  // namespace kvs
