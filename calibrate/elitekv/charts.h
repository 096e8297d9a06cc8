#pragma once

#include <cstddef>
#include <vector>

#include "calibrate/elitekv/config.h"
#include "model/config.h"
#include "results/elite_chart.h"

namespace kvs {

/// The chunks of a config, of `chunks` that a head has.
EliteMap elite_map(const EliteConfig& config, std::size_t chunks);
/// The trials that met neither NaN nor infinity.
EliteSweep elite_sweep(const std::vector<EliteTrial>& trials);
/// `_elite` and, where sizes were tried, `_trials`, of so many documents of so many tokens.
std::vector<draw::Figure> elite_figures(const EliteConfig& config, const ModelConfig& model, std::size_t documents,
                                        std::size_t held_out, std::size_t tokens);

}  // namespace kvs
