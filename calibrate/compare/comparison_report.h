#pragma once

#include <span>
#include <string>

#include "calibrate/compare/comparison.h"
#include "calibrate/compare/grid.h"
#include "io/json.h"
#include "results/tradeoff_chart.h"

namespace kvs {

/// What the best cell is named for.
struct ComparisonGoals {
  std::span<const double> budgets;  // descending shares of the full cache's bytes
  std::span<const double> losses;   // ascending relative changes of perplexity
};

/// `full`, `budgets`, `cells`, `best`, `smallest` (compare/choices.h) and `left_out` of a comparison (docs/compare.md),
/// without times: the same whenever it is run.
Json comparison_json(std::span<const CompareCell> cells, std::span<const CellResult> results,
                     const ComparisonGoals& goals, const ModelConfig& model, std::size_t window);
/// A line for each cell, by budget and divergence, what is best at each budget and smallest at each loss, and what the
/// front retrieves and how fast it decodes. @param speeds  null: not measured
std::string comparison_text(const Json& comparison, const Json& speeds);
/// What caches lose by the bytes that they hold.
struct ParetoPlot {
  std::string heading;  // the model's name and what its front was scored on
  std::vector<TradePoint> points;
};
/// Cells of fewer documents than the front's are left out.
ParetoPlot pareto_plot(const Json& comparison);

}  // namespace kvs
