// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/transform/calibration.h"
#include "io/checkpoint.h"
#include "results/evaluation.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// Adds all documents to the sums, except those saved by an earlier run.
/// @param where  the checkpoint, for messages;  @param done  called with the number of documents so far
/// @return TransformPlan::losses of the earlier run.  @throws Error kInput for an invalid checkpoint
std::vector<TransformScales> sum_documents(TransformMoments& moments, StateSource& source,
                                           const std::optional<Checkpoint::State>& saved, Checkpoint& checkpoint,
                                           const std::string& where, const std::function<void(std::size_t)>& done);
/// Like calibrate_transform(Decoder&, ...), but keeps measured costs in `checkpoint`.
TransformCalibration calibrate_transform(Decoder& decoder, const TransformMoments& moments,
                                         std::span<const std::vector<std::int32_t>> documents,
                                         const TransformPlan& plan, const TransformProgress& progress,
                                         Checkpoint& checkpoint);

/// The caches compared with the full cache on the documents on which costs are measured: `quality` of the config.
struct TransformQuality {
  std::string text;
  CacheQuality measured;
};
TransformQuality transform_quality(const TransformCalibration& found, Decoder& decoder,
                                   std::span<const std::vector<std::int32_t>> documents,
                                   const std::function<void(std::size_t)>& done);
Json to_json(const TransformQuality& of);
std::string transform_summary(const TransformCalibration& found, const TransformQuality& quality);

}  // namespace kvs::inline calibrate
