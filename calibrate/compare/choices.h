// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "calibrate/compare/comparison.h"
#include "calibrate/compare/grid.h"
#include "results/comparison.h"

namespace kvs::inline compare {

/// The error of a configuration that no time was left to score.
inline constexpr const char* kNoTimeToScore = "no time was left";

/// How complex a cache is, in ascending order. Of two caches that the documents do not tell apart, the simpler one is
/// chosen.
enum class Parts {
  kStorage,     // a storage type alone
  kMethod,      // a method with its paper's default settings
  kComposed,    // such a method with a storage type
  kCalibrated,  // settings that were chosen on a text
  kFactors,     // tensors that were calibrated on a text: elitekv, transform, triattention, …
};
Parts parts_of(const Configuration& one);

/// The configurations of a comparison with their scores.
struct ScoredConfigurations {
  std::span<const Configuration> configurations;
  std::span<const ConfigurationResult> results;
  std::span<const ComparedConfiguration> compared;
};

/// Returns a choice for each budget. The candidates are within the budget and were scored on the most documents.
///  - `leader` is the candidate of least divergence.
///  - `alike` are the configurations that the documents do not show to be behind the leader, including those that have
///    fewer documents because the time ended.
///  - `configuration` is the simplest of these, or null.
///  - `kl` is the divergence of `configuration` relative to the one that the verdict names: the reason for the choice.
///  - `unscored` is the number of the budget's configurations that no time was left to score.
///  - `verdict` explains the choice in words.
std::vector<BestChoice> best_choices(const ScoredConfigurations& scored, std::span<const double> budgets);
/// Returns a choice for each loss: the smallest configuration of the Pareto front whose perplexity interval ends at or
/// below the loss, or null.
std::vector<SmallestChoice> smallest_choices(const ScoredConfigurations& scored, std::span<const double> losses);

}  // namespace kvs::inline compare
