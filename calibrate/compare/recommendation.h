#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "calibrate/compare/grid.h"
#include "export/engines/engine.h"
#include "results/recommendation.h"

namespace kvs::inline compare {

/// What a recommendation is for.
struct RecommendationGoal {
  const Engine* engine = nullptr;
  std::size_t context = 0;
  std::optional<double> max_share = {};  // of the full cache's bytes
  double max_kl = 0;                     // nats a token; without effect if max_share is set
};

/// Caches that change more than this are not to be used: nats a token, and the share of equal first choices.
inline constexpr double kUnsafeKl = 0.1, kUnsafeTop1 = 0.9;

/// Chooses among the scored caches of a comparison. With a maximum of bytes: the least divergence within it; else the
/// fewest bytes within the maximum divergence. `safer` and `smaller` are its neighbours on the Pareto front; a smaller
/// one that is not to be used is among `unsafe` alone.
/// @param chosen  gets the index of the chosen configuration
Recommendation recommend(const ComparisonResult& comparison, const RecommendationGoal& goal, const ModelConfig& model,
                         std::optional<std::size_t>& chosen);

}  // namespace kvs::inline compare
