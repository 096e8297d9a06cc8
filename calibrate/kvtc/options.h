// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "calibrate/kvtc/calibration.h"
#include "options/options.h"

namespace kvs::inline calibrate {

/// Adds the options of `kvcalibrate kvtc` but those of models, texts and runs.
void add_kvtc_options(OptionTable& table);
/// Refuses what can be refused without reading a file. @throws Error kUsage
void check_kvtc_options(const Options& options);

/// Returns the plan for the model's budget. @param tokens  of a document of the calibration
/// @throws Error kUsage for a budget without bytes for codes; kUnsupported for a model without the method
KvtcPlan kvtc_plan(const Options& options, const ModelConfig& model, std::size_t tokens);

}  // namespace kvs::inline calibrate
