// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "calibrate/compare/comparison.h"
#include "calibrate/compare/grid.h"
#include "results/comparison.h"

namespace kvs::inline compare {

/// The budgets and losses that a best configuration is chosen for.
struct ComparisonGoals {
  std::span<const double> budgets;  // descending shares of the full cache's bytes
  std::span<const double> losses;   // ascending relative changes of perplexity
};

/// Returns the members `tokens`, `full`, `budgets`, `configurations`, `best`, `smallest` (compare/choices.h) and
/// `left_out` of a comparison (docs/compare.md).
ComparisonResult comparison_result(std::span<const Configuration> configurations,
                                   std::span<const ConfigurationResult> results, const ComparisonGoals& goals,
                                   const ModelConfig& model, std::size_t window);

}  // namespace kvs::inline compare
