// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/common/measured_quality.h"
#include "calibrate/transform/calibration.h"
#include "io/checkpoint.h"
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

std::string transform_summary(const TransformCalibration& found, const MeasuredQuality& quality);

}  // namespace kvs::inline calibrate
