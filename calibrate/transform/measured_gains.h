// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "analyzers/model_gain.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// Returns the coding gains from the sums of `source` over `documents` documents, and which gains are left out and why.
/// @param layers  layers that were summed
/// @param model   its output projections weight the values; null for a capture, which has none
ModelGains measured_gains(const MomentSource& source, std::size_t documents, const std::vector<std::size_t>& layers,
                          const ModelSource* model);

}  // namespace kvs::inline calibrate
