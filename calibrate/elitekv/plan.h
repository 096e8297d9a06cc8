// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/elitekv/by_layer.h"
#include "calibrate/elitekv/config.h"
#include "calibrate/elitekv/search.h"
#include "options/options.h"

namespace kvs::inline calibrate {

// The plan that the options of `kvcalibrate elitekv` request.

void add_elite_options(OptionTable& table);
/// Refuses options that have no effect with others or cannot be combined with them. @throws Error kUsage
void check_elite_options(const Options& options);
bool has_factors(const Options& options);
/// Returns --whiten or its default.
Whitening planned_whitening(const Options& options);

/// The search, the candidates, and the config to fill.
struct ElitePlan {
  EliteSearchPlan search;
  /// The config without picks and factors. It has no rank without --rank or --cache-ratio, or if rows per query head
  /// are not possible.
  EliteConfig config;
  std::vector<EliteCandidate> candidates;    // candidates within --cache-ratio, J-LRD first
  std::optional<EliteByLayerPlan> by_layer;  // requested by --per-layer-rounds
  std::size_t held_out = 0;                  // number of held-out documents
  std::vector<std::string> notes;
};
/// Returns the plan.
/// @param layers     layers to search, ascending;  @param documents  number of documents of the texts
/// @throws Error kUsage for options that the model or the documents do not allow; kUnsupported like refuse_obstacle()
ElitePlan elite_plan(const Options& options, const ModelConfig& model, std::vector<std::size_t> layers,
                     std::size_t documents);

}  // namespace kvs::inline calibrate
