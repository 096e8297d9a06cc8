#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/elitekv/by_layer.h"
#include "calibrate/elitekv/config.h"
#include "calibrate/elitekv/search.h"
#include "options/options.h"

namespace kvs {

// What the options of `kvcalibrate elitekv` say.

void add_elite_options(OptionTable& table);
/// Refuses options that have no effect beside others or cannot be combined with them. @throws Error kUsage
void check_elite_options(const Options& options);
bool has_factors(const Options& options);
/// --whiten or its default.
Whitening planned_whitening(const Options& options);

/// What is searched and chosen from, and what the config will say of it.
struct ElitePlan {
  EliteSearchPlan search;
  /// Picks and factors are still to come. No rank without --rank or --cache-ratio, or where a query head's own rows
  /// cannot be.
  EliteConfig config;
  std::vector<EliteCandidate> candidates;    // what --cache-ratio leaves, J-LRD's first
  std::optional<EliteByLayerPlan> by_layer;  // what --per-layer-rounds asks for
  std::size_t held_out = 0;                  // documents
  std::vector<std::string> notes;
};
/// @param layers     to search, ascending;  @param documents  of the texts
/// @throws Error kUsage for options that the model or the documents do not admit; kUnsupported as refuse_obstacle()
ElitePlan elite_plan(const Options& options, const ModelConfig& model, std::vector<std::size_t> layers,
                     std::size_t documents);

}  // namespace kvs
