#pragma once

#include <span>
#include <string>

#include "compare/comparison.h"
#include "compare/grid.h"
#include "export/figures/pareto.h"
#include "io/json.h"

namespace kvs {

/// `full`, `budgets`, `cells` and `best` of a comparison (docs/compare.md), without times: the same whenever it is run.
/// best: for each budget the cell of least divergence that holds no more, of those with the most documents.
Json comparison_json(std::span<const CompareCell> cells, std::span<const CellResult> results,
                     std::span<const double> budgets, const ModelConfig& model, std::size_t window);
/// A line for each cell, by budget and divergence, what is best at each budget, and what the front retrieves and how
/// fast it decodes. @param speeds  null: not measured
std::string comparison_text(const Json& comparison, const Json& speeds);
ParetoPlot pareto_plot(const Json& comparison, const std::string& heading);

}  // namespace kvs
