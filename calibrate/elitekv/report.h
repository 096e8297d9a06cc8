// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/elitekv/config.h"
#include "model/config.h"

namespace kvs::inline calibrate {

/// Returns the result of a search in words: the chunks that most heads keep, and the size of the cache with factors.
std::string elite_summary(const EliteConfig& config, const ModelConfig& model);

}  // namespace kvs::inline calibrate
