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

namespace kvs {

/// The least documents that a method is calibrated on where there are so many: less time leaves it out.
inline constexpr std::size_t kMinCalibrated = 4;

/// The error of what no time is left to calibrate.
inline constexpr const char* kNoTimeToCalibrate = "no time was left to calibrate it";

/// Calibrations one after the other, each kept in the records with its time, so that a run that goes on has the same
/// ones. Rank 0 makes them all, and the others wait. What they are expected to take is scaled by what those before
/// took.
class CalibrationQueue {
 public:
  CalibrationQueue(RunRecords& records, std::optional<double> seconds) : records_(&records), limit_(seconds) {}

  /// Documents that a method is calibrated on: as many of `all` as end in its even share of the time that is left, and
  /// not fewer than kMinCalibrated.
  /// @param method    names it in the records;  @param waiting  methods that share the time, this one among them
  /// @param expected  seconds that all calibrations of the method take on so many documents
  std::size_t documents(std::string_view method, std::size_t all, std::size_t waiting,
                        const std::function<double(std::size_t)>& expected);
  /// What `calibrate` gives, {"error": …} where it throws kUsage, kUnsupported or kData, or where too little time is
  /// left.
  /// @param what  names it in the records;  @param expected  seconds that it will take
  Json next(const Json& what, const std::function<Json()>& calibrate, double expected);
  /// To be called by a calibration now and then: ends it where it takes far longer than was expected.
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
  std::chrono::steady_clock::time_point begun_ = {};  // of the calibration that is made
  double spent_ = 0, paced_ = 0, expected_ = 0;       // paced: of what was expected to take so long
};

/// The budget of documents of `tokens` tokens that gives the layers without a sliding window the share of their tokens
/// that `budget` gives them of documents of `compared` tokens: of shorter documents windows take more.
double calibration_budget(const ModelConfig& model, double budget, std::size_t compared, std::size_t tokens);

/// Whether compare_calibrated() calibrates a method: one with a size and settings to choose from (calibrate/budget).
bool is_calibrated(std::string_view method);

/// Passes over a document that calibrating a method to one budget takes at most.
std::size_t calibration_passes(const ModelConfig& model, std::string_view method, const BudgetText& text);

/// The cells of a method that is_calibrated(), at each budget (calibrate_to_budget: one setting for all layers,
/// screened by divergence). A calibration that fails is a cell with its reason.
/// @param text  its measured documents are of one length;  @param pass_seconds  that a pass over one of them takes
/// @param progress  called before each calibration with the number of those done and of all
std::vector<CompareCell> compare_calibrated(Decoder& decoder, const CompareGrid& grid, std::string_view method,
                                            const BudgetText& text, CalibrationQueue& queue, double pass_seconds,
                                            const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace kvs
