#pragma once

#include <cstddef>
#include <vector>

#include "analyzers/model_gain.h"
#include "model/model.h"

namespace kvs {

/// The coding gains of what `source` has summed over `documents` documents, and what was left out of them and why.
/// @param layers  that were summed
/// @param model   whose output projections weigh the values; null with a capture, which holds none
ModelGains measured_gains(const MomentSource& source, std::size_t documents, const std::vector<std::size_t>& layers,
                          const ModelSource* model);

}  // namespace kvs
