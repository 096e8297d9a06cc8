#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/transform/calibration.h"
#include "io/checkpoint.h"
#include "results/evaluation.h"
#include "states/state_source.h"

namespace kvs {

/// Adds all documents to the sums, after those that a run before has saved.
/// @param where  the checkpoint, for messages;  @param done  is told the documents so far
/// @return TransformPlan::losses of that run.  @throws Error kInput for a checkpoint that no run writes
std::vector<TransformScales> sum_documents(TransformMoments& moments, StateSource& source,
                                           const std::optional<Checkpoint::State>& saved, Checkpoint& checkpoint,
                                           const std::string& where, const std::function<void(std::size_t)>& done);
/// calibrate_transform() that keeps what it measures.
TransformCalibration calibrate_transform(Decoder& decoder, const TransformMoments& moments,
                                         std::span<const std::vector<std::int32_t>> documents,
                                         const TransformPlan& plan, const TransformProgress& progress,
                                         Checkpoint& checkpoint);

/// The caches on the documents that costs are measured on, beside the full cache: `quality` of the config.
struct TransformQuality {
  std::string text;
  CacheQuality measured;
};
TransformQuality transform_quality(const TransformCalibration& found, Decoder& decoder,
                                   std::span<const std::vector<std::int32_t>> documents,
                                   const std::function<void(std::size_t)>& done);
Json to_json(const TransformQuality& of);
std::string transform_summary(const TransformCalibration& found, const TransformQuality& quality);

}  // namespace kvs
