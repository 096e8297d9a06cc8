// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/comparison_result.h"

#include <algorithm>

#include "calibrate/compare/calibration.h"
#include "calibrate/compare/choices.h"
#include "calibrate/compare/evidence.h"
#include "eval/cache_quality.h"
#include "io/finite.h"
#include "results/comparison_words.h"

namespace kvs::inline compare {
namespace {

std::optional<std::string> text_or_none(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

ScoredLoss scored_loss(const ConfigurationResult& result, const ModelConfig& model, std::size_t window) {
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
          .ratio = {ratio.interval, ratio.over, exact.ppl, exact.nll_difference},
          .tail = found.loss->tail};
}

ComparedConfiguration compared_configuration(const Configuration& one, const ConfigurationResult& result,
                                             std::span<const double> budgets, const ModelConfig& model,
                                             std::size_t window) {
  ComparedConfiguration compared{.label = one.label,
                                 .method = one.method,
                                 .form = std::string(form_name(one.form)),
                                 .type = text_or_none(one.type),
                                 .budget = one.budget == 0 ? budgets.front() : one.budget,
                                 .settings = one.settings,
                                 .config = text_or_none(one.config),
                                 .calibrated = one.calibrated,
                                 .shared_bytes = one.shared_bytes,
                                 .engines = one.engines,
                                 .documents = result.scores.kl.size(),
                                 .stopped = result.stopped,
                                 .error = text_or_none(one.error.empty() ? result.error : one.error)};
  if (one.needs > 0) compared.needs = one.needs;
  if (compared.documents == 0) {
    if (!compared.error) compared.error = kNoTimeToScore;
    return compared;
  }
  compared.loss = scored_loss(result, model, window);
  if (!one.config.empty())
    if (const double holding = min_holding(budgets, compared.loss->bytes_ratio); holding > 0) compared.budget = holding;
  return compared;
}

/// Returns true if a configuration has its paper's default settings and `calibrated` is the same cache with settings
/// chosen on a text.
bool is_default_of(const ComparedConfiguration& one, const ComparedConfiguration& calibrated) {
  return !one.calibrated && !one.config && one.loss && one.method == calibrated.method && one.type == calibrated.type &&
         one.budget == calibrated.budget;
}

/// Returns the perplexity and divergence of a configuration relative to another on the documents that both have.
RelativeLoss relative_to(const ConfigurationResult& result, const ConfigurationResult& other) {
  const LossDifferences found = from_other(result, other);
  return {found.documents, ratio_of(found.nll, found.of_parts), ratio_of(found.kl, found.of_parts)};
}

/// Sets the gain of each calibrated configuration over its paper's default settings at the same budget.
void add_gains(std::vector<ComparedConfiguration>& configurations, std::span<const ConfigurationResult> results) {
  for (std::size_t n = 0; n < configurations.size(); ++n) {
    if (!configurations[n].calibrated || !configurations[n].loss) continue;
    for (std::size_t other = 0; other < configurations.size(); ++other)
      if (is_default_of(configurations[other], configurations[n]))
        configurations[n].over_standard = relative_to(results[n], results[other]);
  }
}

/// Sets the loss of each configuration relative to the configuration of least divergence at its budget.
void add_losses(std::vector<ComparedConfiguration>& configurations, std::span<const BestChoice> best,
                std::span<const ConfigurationResult> results) {
  for (std::size_t n = 0; n < configurations.size(); ++n)
    for (const BestChoice& of : best)
      if (configurations[n].loss && of.budget == configurations[n].budget && of.leader && *of.leader != n)
        configurations[n].over_best = relative_to(results[n], results[*of.leader]);
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

/// Returns what the time limit left out, also in words: calibrations, configurations that were not scored, and
/// configurations that were scored on fewer documents without being dominated.
LeftOut left_out(const ComparisonResult& result) {
  LeftOut left;
  const std::size_t most = result.max_documents();
  for (const ComparedConfiguration& one : result.configurations) {
    if (one.error == kNoTimeToScore) ++left.unscored;
    if (one.loss && one.documents < most && !one.stopped) ++left.shortened;
    if (one.error == kNoTimeToCalibrate) left.calibrations.push_back({one.label, one.budget});
  }
  std::string words;
  const auto add = [&](const std::string& what) { words += (words.empty() ? " " : "; ") + what; };
  if (!left.calibrations.empty()) add("calibrating " + calibrations_text(left.calibrations));
  if (left.unscored > 0)
    add("scoring " + std::to_string(left.unscored) + " of " + std::to_string(result.configurations.size()) +
        " configurations");
  if (left.shortened > 0) add("scoring " + std::to_string(left.shortened) + " on as many documents as the others");
  if (!words.empty()) left.verdict = "the time limit left out" + words;
  return left;
}

/// Returns the full cache's perplexity on the documents of the configuration that was scored on the most.
std::optional<double> full_ppl(std::span<const ConfigurationResult> results) {
  const auto longest =
      std::ranges::max_element(results, {}, [](const ConfigurationResult& one) { return one.scores.kl.size(); });
  if (longest == results.end() || longest->scores.kl.empty()) return std::nullopt;
  return if_finite(longest->sum.full->sum.perplexity());
}

}  // namespace

ComparisonResult comparison_result(std::span<const Configuration> configurations,
                                   std::span<const ConfigurationResult> results, const ComparisonGoals& goals,
                                   const ModelConfig& model, std::size_t window) {
  ComparisonResult result{.tokens = window, .full = {full_ppl(results)}};
  result.budgets.assign(goals.budgets.begin(), goals.budgets.end());
  std::vector<RaceScores> scores;
  for (std::size_t n = 0; n < configurations.size(); ++n) {
    result.configurations.push_back(
        compared_configuration(configurations[n], results[n], goals.budgets, model, window));
    scores.push_back(results[n].scores);
  }
  for (const std::size_t n : pareto_front(scores)) result.configurations[n].pareto_front = true;
  add_gains(result.configurations, results);
  const ScoredConfigurations scored{configurations, results, result.configurations};
  result.best = best_choices(scored, goals.budgets);
  result.smallest = smallest_choices(scored, goals.losses);
  add_losses(result.configurations, result.best, results);
  result.left_out = left_out(result);
  return result;
}

}  // namespace kvs::inline compare
