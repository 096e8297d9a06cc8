// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/recommendation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "calibrate/compare/choices.h"
#include "core/error.h"
#include "eval/cache_quality.h"
#include "results/comparison_words.h"

namespace kvs::inline compare {
namespace {

constexpr std::size_t kShownUnsafe = 4;

using Indices = std::vector<std::size_t>;

const ScoredLoss& loss_of(const ComparisonResult& comparison, std::size_t n) {
  return *comparison.configurations[n].loss;
}

/// Returns the smallest share of the full cache's bytes that the configuration takes; 1 if it is unknown.
double smallest_share(const Configuration& one) {
  if (one.needs > 0) return one.needs;
  if (!one.error.empty()) return 1;
  return one.share > 0 ? one.share : one.budget;
}

/// Returns the configurations that were scored on the most documents or stopped as clearly dominated: by bytes, of
/// equal bytes by divergence.
Indices scored(const ComparisonResult& comparison) {
  Indices found;
  const std::size_t most = comparison.max_documents();
  for (std::size_t n = 0; n < comparison.configurations.size(); ++n) {
    const ComparedConfiguration& one = comparison.configurations[n];
    if (one.loss && (one.documents == most || one.stopped)) found.push_back(n);
  }
  std::ranges::stable_sort(found, {}, [&](std::size_t n) {
    return std::pair(loss_of(comparison, n).bytes_ratio, loss_of(comparison, n).kl);
  });
  return found;
}

std::optional<std::size_t> choice(const ComparisonResult& comparison, const Indices& by_bytes,
                                  const RecommendationGoal& goal) {
  std::optional<std::size_t> chosen;
  for (const std::size_t n : by_bytes) {
    const ScoredLoss& loss = loss_of(comparison, n);
    if (comparison.configurations[n].stopped) continue;  // another cache was clearly better on fewer documents
    if (!goal.max_share) {
      if (loss.kl <= goal.max_kl) return n;
    } else if (is_within(loss.bytes_ratio, *goal.max_share) && (!chosen || loss.kl < loss_of(comparison, *chosen).kl)) {
      chosen = n;
    }
  }
  return chosen;
}

/// Returns the first error of the caches if none of them has been scored and time did not run out; else "".
std::string refusal_of(const ComparisonResult& comparison) {
  std::string refusal;
  for (const ComparedConfiguration& one : comparison.configurations) {
    if (one.loss || one.error == kNoTimeToScore) return "";
    if (refusal.empty()) refusal = one.error.value_or("");
  }
  return refusal;
}

class Recommender {
 public:
  Recommender(const ComparisonResult& comparison, const RecommendationGoal& goal, const ModelConfig& model)
      // The settings of methods suit documents of the measured length only.
      : comparison_(comparison),
        sized_(goal.engine->runs_methods ? std::min(goal.context, comparison.tokens) : goal.context),
        full_bytes_(full_cache_bytes(model, sized_)),
        by_bytes_(scored(comparison)) {}

  const Indices& by_bytes() const { return by_bytes_; }
  std::size_t sized() const { return sized_; }
  double full_bytes() const { return full_bytes_; }
  Recommendation::Cache cache(std::size_t n) const {
    const ComparedConfiguration& one = comparison_.configurations[n];
    return {.label = one.label,
            .settings = one.settings,
            .bytes = one.loss->bytes_ratio * full_bytes_,
            .documents = one.documents,
            .loss = *one.loss,
            .retrieval = one.retrieval};
  }
  /// Returns the neighbours on the Pareto front: the nearest larger cache with less divergence, and the nearest
  /// smaller.
  std::optional<Recommendation::Cache> neighbour(std::size_t chosen, bool smaller) const {
    std::optional<std::size_t> nearest;
    for (const std::size_t n : by_bytes_) {
      if (!comparison_.configurations[n].pareto_front || n == chosen) continue;
      const bool is_smaller = loss_of(comparison_, n).bytes_ratio < loss_of(comparison_, chosen).bytes_ratio;
      if (is_smaller != smaller) continue;
      if (!nearest || smaller) nearest = n;
    }
    if (!nearest || (smaller && loss_of(comparison_, *nearest).is_unsafe())) return std::nullopt;
    return cache(*nearest);
  }
  std::vector<Recommendation::Cache> unsafe(std::optional<std::size_t> chosen) const {
    std::vector<Recommendation::Cache> caches;
    for (auto n = by_bytes_.rbegin(); n != by_bytes_.rend() && caches.size() < kShownUnsafe; ++n)
      if (*n != chosen && loss_of(comparison_, *n).is_unsafe()) caches.push_back(cache(*n));
    return caches;
  }

 private:
  const ComparisonResult& comparison_;
  std::size_t sized_;
  double full_bytes_;
  Indices by_bytes_;
};

}  // namespace

void require_reachable(std::span<const Configuration> configurations, const std::string& budget, double share) {
  if (std::ranges::any_of(configurations, [&](const Configuration& one) {
        return one.error.empty() && is_within(smallest_share(one), share);
      }))
    return;
  const auto nearest = std::ranges::min_element(configurations, {}, smallest_share);
  std::string which;
  if (nearest != configurations.end())
    which = "; " + (nearest->error.empty() || nearest->needs > 0
                        ? "the nearest is " + nearest->label + text_of(" with %.3g %%", 100 * smallest_share(*nearest))
                        : nearest->error);
  throw Error(ErrorCode::kUsage, "--budget", "found " + budget + ", which no cache of the engine reaches" + which);
}

Recommendation recommend(const ComparisonResult& comparison, const RecommendationGoal& goal, const ModelConfig& model,
                         std::optional<std::size_t>& chosen) {
  const Recommender recommender(comparison, goal, model);
  chosen = choice(comparison, recommender.by_bytes(), goal);
  Recommendation one{.head = comparison.head,
                     .engine = std::string(goal.engine->name),
                     .engine_version = std::string(goal.engine->version),
                     .context = goal.context,
                     .sized = recommender.sized(),
                     .tokens = comparison.tokens,
                     .scored = comparison.tokens - comparison.prefix - 1,
                     .max_kl = goal.max_kl,
                     .full_bytes = recommender.full_bytes(),
                     .unsafe = recommender.unsafe(chosen)};
  one.head.format = "kvspectrum-recommendation";
  for (const ComparedConfiguration& other : comparison.configurations) {
    if (other.error == kNoTimeToScore) one.unmeasured.push_back(other.label);
    if (other.loss && other.documents < comparison.max_documents() && !other.stopped)
      one.shortened.push_back(other.label);
  }
  if (goal.max_share) one.max_bytes = *goal.max_share * one.full_bytes;
  if (chosen) {
    one.chosen = recommender.cache(*chosen);
    one.smaller = recommender.neighbour(*chosen, true);
    one.safer = recommender.neighbour(*chosen, false);
    return one;
  }
  one.refusal = refusal_of(comparison);
  const Indices& found = recommender.by_bytes();
  const auto least = std::ranges::min_element(found, {}, [&](std::size_t n) { return loss_of(comparison, n).kl; });
  if (least != found.end() && !loss_of(comparison, *least).is_unsafe()) one.safer = recommender.cache(*least);
  return one;
}

}  // namespace kvs::inline compare
