#pragma once

#include "analyzers/model_gain.h"
#include "results/coding_gain.h"

namespace kvs {

/// Every step by layer and head, its optimism, and the families of methods with their verdicts.
CodingGainResult coding_gain_result(const ModelGains& gains);

}  // namespace kvs
