// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "calibrate/transform/calibration.h"
#include "model/model.h"
#include "options/options.h"

namespace kvs::inline calibrate {

// The plan that the options of `kvcalibrate transform` request.

void add_transform_options(OptionTable& table);
/// Refuses values that are invalid for every file. @throws Error kUsage
void check_transform_options(const Options& options);
/// Returns the geometry that the options request. @param tokens, documents  tokens per document of the text, documents
/// @throws Error kUnsupported for a prediction in a model without attention in layer 0
TransformGeometry planned_geometry(const Options& options, const ModelConfig& model, std::size_t tokens,
                                   std::size_t documents);
/// Returns the plan that the options request.
/// @throws Error kUsage if the budget is too small, or if --reuse-sensitivities is of another method or of some layers
TransformPlan transform_plan(const Options& options, const ModelSource& model, const TransformGeometry& geometry,
                             std::size_t tokens);

}  // namespace kvs::inline calibrate
