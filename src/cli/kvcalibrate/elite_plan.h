#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "calibrate/elitekv/by_layer.h"
#include "calibrate/elitekv/config.h"
#include "calibrate/elitekv/elite_allocation.h"
#include "calibrate/elitekv/search.h"
#include "cli/kvcalibrate/elite_input.h"
#include "run/options.h"

namespace kvs {

// What the options of `kvcalibrate elitekv` say. All throw Error kUsage for options that do not go together, and
// kUnsupported as refuse_obstacle().

OptionTable elitekv_options();
bool has_factors(const Options& options);
/// --whiten or its default.
Whitening planned_whitening(const Options& options);
/// What --ratio leaves to choose from.
std::vector<EliteAllocation> allocations(const Options& options, const ModelConfig& model);
/// Their factorizations, J-LRD's first.
std::vector<EliteCandidate> candidates(const Options& options, const ModelConfig& model);
/// What --by-layer asks for, of the other options of which some do not go with it.
std::optional<EliteByLayerPlan> by_layer_plan(const Options& options, const ModelConfig& model);
/// --held-out or its default; 0 without --ratio and --by-layer.
std::size_t held_out_documents(const Options& options, const Corpus& corpus);
EliteSearchPlan search_plan(const Options& options, const EliteInput& input, int norm);
/// Picks and factors are still to come. No rank without --rank or --ratio, or where a query head's own rows cannot be.
EliteConfig planned_config(const Options& options, const EliteSearchPlan& plan, const ModelConfig& model, bool quiet);

}  // namespace kvs
