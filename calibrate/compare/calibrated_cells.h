#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "calibrate/compare/grid.h"
#include "calibrate/compare/records.h"
#include "run/estimate.h"
#include "run/model_session.h"
#include "texts/corpus.h"

namespace kvs {

/// What calibrations made before anything is scored.
struct CalibratedCells {
  std::vector<CompareCell> cells;
  double seconds = 0;
  std::map<std::string, std::size_t> methods = {};  // documents that each method was calibrated on
};

/// What is calibrated, and where configs go.
struct CalibrationPlan {
  std::vector<const SeriesMethod*> series;  // methods that write configs, in `folder`
  std::filesystem::path folder = {};
  std::function<Provenance(const Corpus&)> provenance = {};  // of configs that are chosen on a text

  /// The config of a series at a share of the full cache's bytes.
  std::filesystem::path config(std::string_view name, double share) const;
};
/// "NAME_12.5.json" of a share of 0.125.
std::string share_file(const std::string& name, double share);
/// "12.5" of 0.125.
std::string percent_text(double share);

/// Cells of methods calibrated on documents beforehand: the series of the plan by configs, the others by their
/// settings. Where the time is short, methods of low priority numbers come first, then small budgets, each on as many
/// documents as its share allows, evenly spaced; what is left out is said.
/// @param max_seconds  that all of them may take
CalibratedCells calibrated_cells(const CalibrationPlan& plan, const RunOptions& run, const ModelSession& session,
                                 const CompareGrid& grid, const Corpus& corpus, RunRecords& records,
                                 std::optional<double> max_seconds);
/// How many there are at most.
std::size_t max_calibrated_cells(const CalibrationPlan& plan, const CompareGrid& grid);
/// What that takes at most, and what its caches code of `scored` tokens.
Estimate calibration_estimate(const CalibrationPlan& plan, const ModelSession& session, const CompareGrid& grid,
                              const Corpus& corpus, std::size_t scored);

}  // namespace kvs
