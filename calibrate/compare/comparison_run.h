// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/compare/best_configs.h"
#include "calibrate/compare/comparison.h"
#include "calibrate/compare/comparison_files.h"
#include "calibrate/compare/grid.h"
#include "calibrate/compare/pareto_front.h"
#include "export/engines/engine.h"
#include "run/task_input.h"

namespace kvs::inline compare {

/// A time limit that starts with the program.
class ComparisonClock {
 public:
  explicit ComparisonClock(std::optional<double> seconds) : seconds_(seconds) {}

  std::optional<double> limit() const noexcept { return seconds_; }
  double spent() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  /// Returns the remaining seconds after this run and the earlier run that it resumes; nothing without a limit.
  std::optional<double> left(const RunRecords& records) const {
    if (!seconds_) return std::nullopt;
    return *seconds_ - spent() - records.replayed_seconds();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<double> seconds_;
};

/// The configurations and documents of a comparison.
struct CompareInput {
  CompareGrid grid;
  const Engine* engine = nullptr;  // that executes all that is scored; nullptr: any
  ComparisonPlan plan;
  std::optional<Corpus> calibration;
  std::vector<std::vector<std::int32_t>> documents;    // of the run, texts interleaved
  std::size_t decode = 0;                              // tokens to time the front on
  std::vector<Configuration> configurations;           // calibrated configurations are appended after their calibration
  std::map<std::string, std::size_t> calibrated = {};  // documents that each method was calibrated on
  std::optional<TaskInput> task = {};                  // questions for the front
};
/// Returns the documents of a run that has read its texts, with the configurations of a grid and the questions of
/// --task. Sets the grid's tokens.
/// @param timed  share of --time that is kept for the front's speeds
CompareInput compare_input(const Run& run, CompareGrid grid, const Engine* engine, double timed);

/// The output of a run: JSON with --json, else the text.
struct Conclusion {
  Json json;
  std::string text;
};
/// Draws a conclusion from a comparison. It may add configs and other files, which are written with the comparison's.
using Conclude = std::function<Conclusion(const ComparisonResult&, BestConfigs&, OutputSet&)>;

/// Calibrates, scores, times the Pareto front, asks it the questions, writes the files and prints the result. The
/// weights must be loaded.
/// @param conclude  empty: the comparison itself is printed
void run_comparison(Run& run, const ComparisonFiles& files, CompareInput input, const ComparisonClock& clock,
                    const Conclude& conclude = {});

}  // namespace kvs::inline compare
