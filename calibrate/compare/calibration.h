// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "calibrate/budget/calibration.h"
#include "calibrate/compare/grid.h"
#include "calibrate/compare/records.h"
#include "model/decoder.h"

namespace kvs::inline compare {

/// Minimum number of documents to calibrate a method on, if the text has that many. A method with less time is left
/// out.
inline constexpr std::size_t kMinCalibrated = 4;

/// The error of a method that no time was left to calibrate.
inline constexpr const char* kNoTimeToCalibrate = "no time was left to calibrate it";

/// Runs calibrations one after the other. The records keep each result with its time, so that a resumed run has the
/// same results. Rank 0 runs all calibrations while the other ranks wait. Expected times are scaled by the ratio of
/// measured to expected time of earlier calibrations.
class CalibrationQueue {
 public:
  CalibrationQueue(RunRecords& records, std::optional<double> seconds) : records_(&records), limit_(seconds) {}

  /// Returns the number of documents to calibrate a method on: as many of `all` as fit its even share of the remaining
  /// time, and at least kMinCalibrated.
  /// @param method    its name in the records
  /// @param waiting   number of methods that share the time, including this one
  /// @param expected  returns the seconds that all calibrations of the method take on a number of documents
  std::size_t documents(std::string_view method, std::size_t all, std::size_t waiting,
                        const std::function<double(std::size_t)>& expected);
  /// Returns the result of `calibrate`, or {"error": …} if it throws kUsage, kUnsupported or kData or if too little
  /// time is left.
  /// @param what      its key in the records
  /// @param expected  seconds that the calibration is expected to take
  Json next(const Json& what, const std::function<Json()>& calibrate, double expected);
  /// Ends a calibration that takes far longer than expected. A calibration must call check_time() regularly.
  void check_time() const;
  double seconds() const noexcept { return spent_; }

 private:
  std::size_t affordable_documents(std::size_t all, std::size_t waiting,
                                   const std::function<double(std::size_t)>& expected) const;
  Json made(const Json& what, const std::function<Json()>& calibrate, double expected);
  void count(double seconds, double expected);
  double pace() const { return expected_ > 0 && paced_ > 0 ? paced_ / expected_ : 1; }

  RunRecords* records_;
  std::optional<double> limit_;
  std::chrono::steady_clock::time_point begun_ = {};  // start of the current calibration
  double spent_ = 0, paced_ = 0, expected_ = 0;       // paced_: measured seconds of the work counted in expected_
};

/// Converts a budget for documents of `compared` tokens into one for documents of `tokens` tokens, such that layers
/// without a sliding window keep the same share of their tokens. Windows take a larger share of shorter documents.
double calibration_budget(const ModelConfig& model, double budget, std::size_t compared, std::size_t tokens);

/// Returns true if compare_calibrated() calibrates a method: it has a size and settings to choose from
/// (calibrate/budget).
bool is_calibrated(std::string_view method);

/// Returns the maximum number of passes over a document to calibrate a method to one budget.
std::size_t calibration_passes(const ModelConfig& model, std::string_view method, const BudgetText& text);

/// Calibrates a method that is_calibrated() to each budget (calibrate_to_budget: one setting for all layers, screened
/// by divergence) and returns its configurations. A calibration that fails gives a configuration with the reason.
/// @param text          its measured documents have one length
/// @param pass_seconds  seconds of a pass over one of these documents
/// @param progress      called before each calibration with the number of finished calibrations and of all
std::vector<Configuration> compare_calibrated(Decoder& decoder, const CompareGrid& grid, std::string_view method,
                                              const BudgetText& text, CalibrationQueue& queue, double pass_seconds,
                                              const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace kvs::inline compare
