// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "calibrate/compare/grid.h"
#include "export/engines/engine.h"
#include "results/recommendation.h"

namespace kvs::inline compare {

/// The purpose of a recommendation.
struct RecommendationGoal {
  const Engine* engine = nullptr;
  std::size_t context = 0;
  std::optional<double> max_share = {};  // of the full cache's bytes
  double max_kl = 0;                     // nats a token; without effect if max_share is set
};

/// Refuses a budget that no configuration reaches. A sized configuration reaches its own budget.
/// @param budget  as typed;  @param share  the budget as a share of the full cache's bytes
/// @throws Error kUsage naming the nearest configuration and its share
void require_reachable(std::span<const Configuration> configurations, const std::string& budget, double share);

/// Chooses among the scored caches of a comparison: with a maximum of bytes the cache of least divergence within it,
/// otherwise the smallest cache within the maximum divergence. Of equal bytes, the cache of least divergence is chosen.
/// `safer` and `smaller` are the neighbours of the choice on the Pareto front. A smaller neighbour that is not to be
/// used is only among `unsafe`, which holds the four largest.
/// @param chosen  gets the index of the chosen configuration
Recommendation recommend(const ComparisonResult& comparison, const RecommendationGoal& goal, const ModelConfig& model,
                         std::optional<std::size_t>& chosen);

}  // namespace kvs::inline compare
