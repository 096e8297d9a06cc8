// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "caches/layer_cache.h"
#include "caches/parameters.h"
#include "calibrate/oscar/rotations.h"
#include "model/config.h"

namespace kvs::inline calibrate {

/// Returns a function that creates caches with these rotations, which they share.
/// @throws Error like Parameters
std::function<Cache()> oscar_caches(Backend& backend, const ModelConfig& model, const Parameters& parameters,
                                    const std::vector<OscarRotations>& layers);

}  // namespace kvs::inline calibrate
