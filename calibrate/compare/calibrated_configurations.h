// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline compare {

/// The results of the calibrations, which run before anything is scored.
struct CalibratedConfigurations {
  std::vector<Configuration> configurations;
  double seconds = 0;
  std::map<std::string, std::size_t> methods = {};  // documents that each method was calibrated on
};

/// The methods to calibrate and the folder of their configs.
struct CalibrationPlan {
  std::vector<const SeriesMethod*> series;  // methods that write configs, in `folder`
  std::filesystem::path folder = {};
  std::function<Provenance(const Corpus&)> provenance = {};  // record of configs chosen on a text

  /// Returns the path of a series' config for a share of the full cache's bytes.
  std::filesystem::path config(std::string_view name, double share) const;
};
/// Returns a config's file name: "NAME_12.5.json" for a share of 0.125.
std::string share_file(const std::string& name, double share);
/// Returns a share in percent: "12.5" for 0.125.
std::string percent_text(double share);

/// Calibrates methods on documents and returns their configurations. Methods of the plan's series get configs, other
/// methods get settings. If the time is short, methods with a low priority number come first, then small budgets. Each
/// method is calibrated on as many evenly spaced documents as its share of the time allows. A note names what is left
/// out.
/// @param max_seconds  time limit for all calibrations together
CalibratedConfigurations calibrated_configurations(const CalibrationPlan& plan, const RunOptions& run,
                                                   const ModelSession& session, const CompareGrid& grid,
                                                   const Corpus& corpus, RunRecords& records,
                                                   std::optional<double> max_seconds);
/// Returns the maximum number of configurations that calibrated_configurations() returns.
std::size_t max_calibrated_configurations(const CalibrationPlan& plan, const CompareGrid& grid);
/// Returns the maximum cost of calibrated_configurations(), plus the cost of coding `scored` tokens with its caches.
Estimate calibration_estimate(const CalibrationPlan& plan, const ModelSession& session, const CompareGrid& grid,
                              const Corpus& corpus, std::size_t scored);

}  // namespace kvs::inline compare
