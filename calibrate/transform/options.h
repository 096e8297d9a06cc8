#pragma once

#include <cstddef>

#include "calibrate/transform/calibration.h"
#include "model/model.h"
#include "options/options.h"

namespace kvs {

// What the options of `kvcalibrate transform` say.

void add_transform_options(OptionTable& table);
/// Refuses values that need no file to be seen. @throws Error kUsage
void check_transform_options(const Options& options);
/// @param tokens  of a document of the text
TransformGeometry planned_geometry(const Options& options, const ModelConfig& model, std::size_t tokens);
/// @throws Error kUsage for a budget that is too small, or a --reuse-sensitivities of another method or of some layers
TransformPlan transform_plan(const Options& options, const ModelSource& model, const TransformGeometry& geometry,
                             std::size_t tokens);

}  // namespace kvs
