#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "calibrate/config/config.h"
#include "io/json.h"
#include "model/decoder.h"
#include "model/model.h"

namespace kvs {

/// Called with a step's name and what is done of it.
using SeriesProgress = std::function<void(std::string_view step, std::size_t done, std::size_t total)>;

/// Writes the configs of one method at several budgets, which share work.
class ConfigSeries {
 public:
  virtual ~ConfigSeries() = default;
  /// Of `share` of the full cache, and its tensors beside it. @throws Error kUsage if nothing has that size
  virtual void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
                     const SeriesProgress& progress) = 0;
  /// What write() measured that later calls depend on, and the same put back in a run that goes on.
  /// restore() @throws Error kInput, naming the record
  virtual Json measured() const { return nullptr; }
  virtual void restore(const JsonCursor& measured) { (void)measured; }
};

/// What a series calibrates on and for.
struct SeriesInput {
  const ModelSource& source;
  Decoder& decoder;
  Backend& backend;
  std::span<const std::vector<std::int32_t>> documents;  // must outlive the series
  std::size_t tokens;                                    // of the documents that are compared
  double max_share;                                      // the greatest budget
};

/// What tells how much a series takes.
struct SeriesSize {
  const ModelConfig& model;
  DType compute;
  std::size_t documents, tokens;  // that it is calibrated on
  double max_share;               // the greatest budget
};

/// One way to calibrate a method to a budget by writing a config.
struct SeriesMethod {
  std::string_view name;
  bool rows;     // has rows that can be stored in other types
  int priority;  // as BudgetGrid::priority
  std::unique_ptr<ConfigSeries> (*start)(const SeriesInput& input);
  /// Passes over a document that it takes, about.
  double (*passes)(const SeriesSize& size, std::size_t budgets);
  /// Values that a trellis codes, at `budgets` budgets: to calibrate, and of `scored` tokens that a cache of each
  /// holds.
  double (*coded_values)(const SeriesSize& size, std::size_t budgets, std::size_t scored);
  /// Bytes at its peak beside the model and a pass.
  double (*memory)(const SeriesSize& size);
};

}  // namespace kvs
