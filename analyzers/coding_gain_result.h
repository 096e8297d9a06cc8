// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzers/model_gain.h"
#include "results/coding_gain.h"

namespace kvs::inline analyzers {

/// Returns the gains of all steps by layer and head, their optimism, and the verdicts on the families of methods.
CodingGainResult coding_gain_result(const ModelGains& gains);

}  // namespace kvs::inline analyzers
