// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "calibrate/config/config.h"
#include "calibrate/transform/calibration.h"
#include "io/json.h"

namespace kvs::inline calibrate {

/// The transform coder at several budgets, which share the sums over the text and the costs of errors.
class TransformSeries {
 public:
  /// @param documents  for the calibration;  @param states  their states
  /// @param tokens     length of the documents of the budgets
  TransformSeries(const ModelSource& source, Decoder& decoder, StateSource& states,
                  std::span<const std::vector<std::int32_t>> documents, std::size_t tokens, TransformRows rows);

  /// Writes the config for `share` of the full cache and, next to it, its tensors (.safetensors). The first call passes
  /// over the documents and measures costs.
  /// @throws Error kUsage if gains, sinks, outliers and waiting tokens take more
  void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
             const TransformProgress& progress);

  /// Returns the measured costs of errors; null before they are measured.
  Json measured() const;
  /// Sets the costs of a previous run; nothing is measured then. @throws Error kInput
  void restore(const JsonCursor& measured);

 private:
  void sum(const TransformProgress& progress);

  const ModelSource& source_;
  Decoder& decoder_;
  StateSource& states_;
  std::span<const std::vector<std::int32_t>> documents_;
  TransformPlan plan_;
  TransformMoments moments_;
  bool summed_ = false;
};

}  // namespace kvs::inline calibrate
