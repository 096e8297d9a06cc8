#pragma once

#include <cstddef>
#include <vector>

#include "calibrate/elitekv/config.h"
#include "model/config.h"
#include "results/elite_chart.h"

namespace kvs {

/// `_elite` and, where sizes were tried, `_trials`.
std::vector<draw::Figure> elite_figures(const EliteConfig& config, const ModelConfig& model, std::size_t documents,
                                        std::size_t held_out, std::size_t tokens);
/// The map of a config that was calibrated on so many documents of so many tokens.
EliteMap elite_map(const EliteConfig& config, const ModelConfig& model, std::size_t documents, std::size_t tokens);
/// The trials of a config on so many documents of so many tokens.
EliteSweep elite_sweep(const EliteConfig& config, const ModelConfig& model, std::size_t documents, std::size_t tokens);

}  // namespace kvs
