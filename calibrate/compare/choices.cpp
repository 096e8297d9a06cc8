// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/choices.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/compare/calibration.h"
#include "calibrate/compare/evidence.h"
#include "calibrate/compare/racing.h"
#include "eval/paired_difference.h"
#include "results/comparison_words.h"

namespace kvs::inline compare {
namespace {

using Indices = std::vector<std::size_t>;

/// Returns a configuration's label and size: "h2o + q8_0 (24.8 %)".
std::string name_of(const ComparedConfiguration& one) {
  return one.label + text_of(" (%.1f %%)", 100 * one.loss->bytes_ratio);
}

/// Returns a configuration's name and scores: "h2o + q8_0 (24.8 %), perplexity × 1.0184 (0.9997–1.0367), KL 0.0236".
std::string described(const ComparedConfiguration& one) {
  const ScoredLoss::Ratio& ratio = one.loss->ratio;
  return name_of(one) + ", perplexity × " + times_text(ratio) + interval_text(ratio.interval, "%.4f") +
         text_of(", KL %.4f", one.loss->kl);
}

/// Returns a divergence relative to another configuration's: "KL × 0.45 (0.41–0.5) of NAME's over 8 documents".
std::string relative_text(const SampledRatio& kl, const ComparedConfiguration& other,
                          const LossDifferences& differences) {
  return text_of("KL × %.3g", kl.mean) + interval_text(kl.interval, "%.3g") + " of " + name_of(other) + "'s over " +
         samples_text(differences);
}

/// Returns the scored configurations of at most `budget`.
Indices configurations_within(const ScoredConfigurations& scored, double budget) {
  Indices found;
  for (std::size_t n = 0; n < scored.configurations.size(); ++n)
    if (const auto& loss = scored.compared[n].loss; loss && is_within(loss->bytes_ratio, budget)) found.push_back(n);
  return found;
}

/// Returns the configurations that were scored on the most documents, sorted by divergence.
Indices rivals(const ScoredConfigurations& scored, const Indices& configurations) {
  std::size_t most = 1;
  for (const std::size_t n : configurations) most = std::max(most, scored.results[n].scores.kl.size());
  Indices found;
  std::ranges::copy_if(configurations, std::back_inserter(found),
                       [&](std::size_t n) { return scored.results[n].scores.kl.size() == most; });
  std::ranges::stable_sort(found, {}, [&](std::size_t n) { return mean_kl(scored.results[n].scores); });
  return found;
}

/// Returns the number of configurations of a budget that no time was left to score.
std::size_t left_behind(const ScoredConfigurations& scored, double budget) {
  return static_cast<std::size_t>(std::ranges::count_if(scored.compared, [&](const ComparedConfiguration& one) {
    return one.budget == budget && (one.error == kNoTimeToScore || one.error == kNoTimeToCalibrate);
  }));
}

/// Explains why a budget has no best configuration: no time was left for its configurations, or all configurations need
/// more bytes. In the second case, the text names the nearest configuration.
std::string unreached_text(const ScoredConfigurations& scored, double budget) {
  if (left_behind(scored, budget) > 0) return "no time was left to score what would reach it";
  const ComparedConfiguration* nearest = nullptr;
  double least = 0;
  for (const ComparedConfiguration& one : scored.compared) {
    const std::optional<double> share = one.loss ? one.loss->bytes_ratio : one.needs;
    if (!share || (nearest != nullptr && *share >= least)) continue;
    nearest = &one;
    least = *share;
  }
  if (nearest == nullptr) return "nothing reaches it";
  return "nothing reaches it; nearest is " + nearest->label + text_of(" with %.3g %%", 100 * least);
}

/// Chooses among the configurations of one budget.
class BestOfBudget {
 public:
  BestOfBudget(const ScoredConfigurations& scored, double budget)
      : scored_(scored), within_(configurations_within(scored, budget)), rivals_(rivals(scored, within_)) {}

  BestChoice choice(double budget) const {
    BestChoice choice{.budget = budget, .unscored = left_behind(scored_, budget)};
    if (rivals_.empty()) {
      choice.verdict = unreached_text(scored_, budget);
      return choice;
    }
    choice.leader = rivals_.front();
    choice.documents = documents_of(rivals_.front());
    decide(rivals_.front(), choice);
    const ComparedConfiguration& named = compared(choice.configuration.value_or(rivals_.front()));
    if (const std::string reason = unsafe_reason(*named.loss); !reason.empty())
      choice.verdict += "; not safe: " + reason;
    if (choice.unscored > 0)
      choice.verdict += "; no time was left to try " + std::to_string(choice.unscored) +
                        (choice.unscored == 1 ? " other" : " others") + " of this budget";
    return choice;
  }

 private:
  const ComparedConfiguration& compared(std::size_t n) const { return scored_.compared[n]; }
  LossDifferences between(std::size_t n, std::size_t other) const {
    return from_other(scored_.results[n], scored_.results[other]);
  }
  std::size_t documents_of(std::size_t n) const { return scored_.results[n].scores.kl.size(); }
  /// Adds the difference of configuration n from another to the evidence of the choice. Returns it in words.
  std::string supported(std::size_t n, std::size_t other, BestChoice& choice) const {
    const LossDifferences differences = between(n, other);
    choice.kl = {ratio_of(differences.kl, differences.of_parts), other};
    return relative_text(choice.kl->ratio, compared(other), differences);
  }

  void decide(std::size_t leader, BestChoice& choice) const {
    const std::optional<std::size_t> next = next_to(leader);
    if (next && between(leader, *next).kl.size() < 2) {
      choice.verdict = "cannot be said of one sample; the least divergence is that of " + described(compared(leader));
      return;
    }
    const Indices alike = alike_to(leader);
    choice.alike = alike;
    std::size_t chosen = leader;
    for (const std::size_t n : alike)
      if (parts_of(scored_.configurations[n]) < parts_of(scored_.configurations[chosen])) chosen = n;
    choice.configuration = chosen;
    choice.verdict = described(compared(chosen)) + ": " +
                     (next ? reason(leader, chosen, *next, alike, choice) : "no other was scored");
  }

  /// Returns the configurations that are not clearly behind the leader: its rivals, then configurations that have fewer
  /// documents because the time ended.
  Indices alike_to(std::size_t leader) const {
    Indices others(rivals_.begin() + 1, rivals_.end());
    std::ranges::copy_if(within_, std::back_inserter(others), [&](std::size_t n) {
      return documents_of(n) < documents_of(leader) && !scored_.results[n].stopped && between(n, leader).kl.size() > 1;
    });
    std::erase_if(others, [&](std::size_t n) {
      const LossDifferences differences = between(n, leader);
      return ratio_of(differences.kl, differences.of_parts).is_above();
    });
    return others;
  }

  /// Returns the second of the rivals. If the leader has no rivals, returns the configuration nearest to it on the
  /// documents that both have.
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

  std::string reason(std::size_t leader, std::size_t chosen, std::size_t next, const Indices& alike,
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
               : "not distinguishable from " + name_of(compared(next)) + fewer + " (" + support + ")";
  }

  /// Returns "not distinguishable from NAME", then `more` and the evidence. The mean KL may differ in the other
  /// direction than most documents do.
  std::string not_told(std::size_t n, std::size_t other, const std::string& more, BestChoice& choice) const {
    const std::string support = supported(n, other, choice);
    const bool lower = mean_kl(scored_.results[n].scores) < mean_kl(scored_.results[other].scores);
    const std::string against = choice.kl->ratio.is_clear() && documents_of(n) == documents_of(other)
                                    ? std::string(", but the mean KL is ") + (lower ? "lower" : "higher")
                                    : "";
    return "not distinguishable from " + name_of(compared(other)) + more + " (" + support + against + ")";
  }

  const ScoredConfigurations& scored_;
  Indices within_, rivals_;
};

/// Returns the upper end of a configuration's interval, if any, as a relative change of perplexity.
std::optional<double> max_loss(const ComparedConfiguration& one) {
  const auto& interval = one.loss->ratio.interval;
  return interval ? std::optional(interval->second - 1) : std::nullopt;
}

std::string over_text(const ScoredConfigurations& scored, std::size_t n) {
  return " over " + samples_text(from_full(scored.results[n]));
}

/// Returns true if the interval of perplexity ends at or below the loss. A KL divergence that exceeds the loss by
/// kUnsafeKl rules a cache out: it changes the predictions, even where its perplexity is lower than the full cache's.
bool costs_at_most(const ComparedConfiguration& one, double loss) {
  return *max_loss(one) <= loss && one.loss->kl <= kUnsafeKl + std::log1p(loss);
}

SmallestChoice smallest_choice(const ScoredConfigurations& scored, double loss) {
  std::optional<std::size_t> smallest, nearest;
  for (std::size_t n = 0; n < scored.configurations.size(); ++n) {
    const ComparedConfiguration& one = scored.compared[n];
    if (!one.pareto_front) continue;
    const auto most = max_loss(one);
    if (!most) continue;
    if (!nearest || *most < *max_loss(scored.compared[*nearest])) nearest = n;
    const bool less = !smallest || one.loss->bytes_ratio < scored.compared[*smallest].loss->bytes_ratio;
    if (less && costs_at_most(one, loss)) smallest = n;
  }
  if (!nearest) return {.loss = loss, .verdict = "cannot be said: no cache has an interval"};
  const std::size_t named = smallest.value_or(*nearest);
  const std::string text = described(scored.compared[named]) + over_text(scored, named);
  return {.loss = loss,
          .configuration = smallest,
          .documents = scored.results[named].scores.kl.size(),
          .verdict =
              smallest ? text
                       : "no cache of the front is known to cost so little; nearest is " + text +
                             text_of(", whose interval ends at %+.3g %%", 100 * *max_loss(scored.compared[named])) +
                             (*max_loss(scored.compared[named]) <= loss ? ", but its KL divergence is too large" : "")};
}

}  // namespace

Parts parts_of(const Configuration& one) {
  const Method* const method = find_method(one.method);
  if (method == nullptr || method->only_with_config()) return Parts::kFactors;
  if (one.calibrated || !one.config.empty()) return Parts::kCalibrated;
  if (method == &kFullMethod) return Parts::kStorage;
  return one.type.empty() ? Parts::kMethod : Parts::kComposed;
}

std::vector<BestChoice> best_choices(const ScoredConfigurations& scored, std::span<const double> budgets) {
  std::vector<BestChoice> all;
  for (const double budget : budgets) all.push_back(BestOfBudget(scored, budget).choice(budget));
  return all;
}

std::vector<SmallestChoice> smallest_choices(const ScoredConfigurations& scored, std::span<const double> losses) {
  std::vector<SmallestChoice> all;
  for (const double loss : losses) all.push_back(smallest_choice(scored, loss));
  return all;
}

}  // namespace kvs::inline compare
