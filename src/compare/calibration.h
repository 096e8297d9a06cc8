#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compare/grid.h"
#include "compare/records.h"
#include "model/decoder.h"

namespace kvs {

/// Calibrations one after the other, each kept in the records with its time, so that a run that goes on has the same
/// ones. Rank 0 makes them all, and the others wait.
class CalibrationQueue {
 public:
  CalibrationQueue(RunRecords& records, std::optional<double> seconds) : records_(&records), limit_(seconds) {}

  /// What `calibrate` gives, {"error": …} where it throws kUsage or kUnsupported, or where too little time is left.
  /// @param what  names it in the records;  @param expected  seconds that it will take
  Json next(const Json& what, const std::function<Json()>& calibrate, double expected);
  double seconds() const noexcept { return spent_; }
  /// Whether what next() expects matters.
  bool is_limited() const noexcept { return limit_.has_value(); }

 private:
  Json made(const Json& what, const std::function<Json()>& calibrate, double expected);

  RunRecords* records_;
  std::optional<double> limit_;
  double spent_ = 0;
};

/// The budget of documents of `tokens` tokens that gives the layers without a sliding window the share of their tokens
/// that `budget` gives them of documents of `compared` tokens: of shorter documents windows take more.
double calibration_budget(const ModelConfig& model, double budget, std::size_t compared, std::size_t tokens);

/// Whether compare_calibrated() calibrates a method: one with a size and settings to choose from (calibrate/budget).
bool is_calibrated(std::string_view method);

/// The cells of the grid's methods that can be calibrated, each calibrated to each budget (calibrate_to_budget: one
/// setting for all layers, screened by divergence). A calibration that fails is a cell with its reason.
/// @param documents  of one length;  @param pass_seconds  that a pass over one of them takes
/// @param progress  called before each calibration with its method and the number of those done and of all
std::vector<CompareCell> compare_calibrated(Decoder& decoder, const CompareGrid& grid,
                                            std::span<const std::vector<std::int32_t>> documents,
                                            CalibrationQueue& queue, double pass_seconds,
                                            const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace kvs
