// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "calibrate/elitekv/config.h"
#include "model/config.h"
#include "results/elite_chart.h"

namespace kvs::inline calibrate {

/// Returns the map of a config's chunks. @param chunks  number of chunks of a head
EliteMap elite_map(const EliteConfig& config, std::size_t chunks);
/// Returns the trials that met neither NaN nor infinity.
EliteSweep elite_sweep(const std::vector<EliteTrial>& trials);
/// Returns the figures `_elite` and, if sizes were tried, `_trials`.
std::vector<draw::Figure> elite_figures(const EliteConfig& config, const ModelConfig& model, std::size_t documents,
                                        std::size_t held_out, std::size_t tokens);

}  // namespace kvs::inline calibrate
