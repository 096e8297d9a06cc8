#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "calibrate/config/config.h"
#include "calibrate/transform/calibration.h"
#include "io/json.h"

namespace kvs {

/// The transform coder at several budgets, which share the sums over the text and what errors cost.
class TransformSeries {
 public:
  /// @param documents  that it is calibrated on;  @param states  theirs
  /// @param tokens     of the documents that budgets are of
  TransformSeries(const ModelSource& source, Decoder& decoder, StateSource& states,
                  std::span<const std::vector<std::int32_t>> documents, std::size_t tokens, TransformRows rows);

  /// Writes the config of `share` of the full cache and its tensors beside it (.safetensors). The first call passes
  /// over the documents and measures costs.
  /// @throws Error kUsage if gains, sinks, outliers and tokens that wait take more
  void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
             const TransformProgress& progress);

  /// What errors cost, once it is measured; null before.
  Json measured() const;
  /// The same of a run before: nothing is measured any more. @throws Error kInput
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

}  // namespace kvs
