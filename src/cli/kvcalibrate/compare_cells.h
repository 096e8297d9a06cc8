#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cli/common/estimate.h"
#include "cli/common/session.h"
#include "cli/kvcalibrate/cache_choice.h"
#include "compare/grid.h"
#include "compare/records.h"

namespace kvs {

/// The cache of a cell. @throws as cache_of_config
CacheChoice cell_choice(const CompareCell& cell, const ModelSource& source);

/// The cells of configs: each as it is, and with its rows stored in each form that they take.
std::vector<CompareCell> config_cells(std::span<const std::string> configs, const CompareGrid& grid,
                                      const ModelSource& source);

/// Cells of methods calibrated on documents beforehand: those of series_methods() by configs, which are written to
/// --calibration-dir, the others by their settings. Adds what they took to `seconds`.
/// @param most_seconds  after which no further calibration begins
std::vector<CompareCell> calibrated_cells(const Options& options, const RunOptions& run, const ModelSession& session,
                                          const CompareGrid& grid, const Corpus& corpus, RunRecords& records,
                                          std::optional<double> most_seconds, double& seconds);
/// How many there are at most.
std::size_t most_calibrated_cells(const Options& options, const CompareGrid& grid);
/// What that takes at most, and what its caches code of `scored` tokens.
Estimate calibration_estimate(const Options& options, const ModelSession& session, const CompareGrid& grid,
                              const Corpus& corpus, std::size_t scored);

/// Makers of the cells' caches, the budgets taking turns. A cell whose cache cannot be made keeps the reason and is
/// left out.
struct RunnableCells {
  std::vector<std::size_t> cells;
  std::vector<std::function<Cache()>> make;
};
RunnableCells runnable_cells(std::vector<CompareCell>& cells, const ModelSession& session, std::size_t tokens);

}  // namespace kvs
