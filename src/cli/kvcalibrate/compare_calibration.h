#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "calibrate/compare/grid.h"
#include "calibrate/compare/records.h"
#include "run/estimate.h"
#include "run/model_session.h"
#include "run/options.h"
#include "run/text_input.h"

namespace kvs {

/// What calibrations made before anything is scored.
struct CalibratedCells {
  std::vector<CompareCell> cells;
  double seconds = 0;
  Json methods = Json::object();  // documents that each method was calibrated on
};

/// Cells of methods calibrated on documents beforehand: those of Calibration::series by configs, which are written to
/// --calibration-dir, the others by their settings. Where the time is short, methods that are likely to win come first,
/// then small budgets, each on as many documents as its share allows, evenly spaced; what is left out is said.
/// @param most_seconds  that all of them may take
CalibratedCells calibrated_cells(const Options& options, const RunOptions& run, const ModelSession& session,
                                 const CompareGrid& grid, const Corpus& corpus, RunRecords& records,
                                 std::optional<double> most_seconds);
/// How many there are at most.
std::size_t most_calibrated_cells(const Options& options, const CompareGrid& grid);
/// What that takes at most, and what its caches code of `scored` tokens.
Estimate calibration_estimate(const Options& options, const ModelSession& session, const CompareGrid& grid,
                              const Corpus& corpus, std::size_t scored);

}  // namespace kvs
