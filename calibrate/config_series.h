// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline calibrate {

/// Called with a step's name, the completed units and their total.
using SeriesProgress = std::function<void(std::string_view step, std::size_t done, std::size_t total)>;

/// Writes the configs of one method at several budgets, which share work.
class ConfigSeries {
 public:
  virtual ~ConfigSeries() = default;
  /// Writes the config for `share` of the full cache, and its tensors. @throws Error kUsage if none has that size
  virtual void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
                     const SeriesProgress& progress) = 0;
  /// measured() returns the measurements of write() that later calls depend on; restore() sets them in a resumed run.
  /// restore() @throws Error kInput, naming the record
  virtual Json measured() const { return nullptr; }
  virtual void restore(const JsonCursor& measured) { (void)measured; }
};

/// The model, documents and budgets of a series.
struct SeriesInput {
  const ModelSource& source;
  Decoder& decoder;
  Backend& backend;
  std::span<const std::vector<std::int32_t>> documents;  // must outlive the series
  std::size_t tokens;                                    // length of the compared documents
  double max_share;                                      // the largest budget
};

/// The quantities that determine a series' cost.
struct SeriesSize {
  const ModelConfig& model;
  DType compute;
  std::size_t documents, tokens;  // of the calibration
  double max_share;               // the largest budget
};

/// One way to calibrate a method to a budget by writing a config.
struct SeriesMethod {
  std::string_view name;
  bool takes_kv_type;  // its rows can be stored in other types
  int priority;        // like BudgetGrid::priority
  std::unique_ptr<ConfigSeries> (*start)(const SeriesInput& input);
  /// Returns the approximate number of passes over a document.
  double (*passes)(const SeriesSize& size, std::size_t budgets);
  /// Returns the number of values that a trellis codes at `budgets` budgets: for calibration, and for `scored` tokens
  /// in a cache of each.
  double (*coded_values)(const SeriesSize& size, std::size_t budgets, std::size_t scored);
  /// Returns the peak memory in bytes in addition to the model and a pass.
  double (*memory)(const SeriesSize& size);
};

}  // namespace kvs::inline calibrate
