// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/compare/comparison_run.h"
#include "calibrate/compare/recommendation.h"
#include "options/options.h"

namespace kvs::inline compare {

// The plan that the options of `kvcalibrate recommend` request. All functions throw Error kUsage naming the option.

void add_recommend_options(OptionTable& table);
/// Returns the purpose of --engine, --context, --budget and --max-kl.
RecommendationGoal recommendation_goal(const Options& options, const ModelConfig& model);
/// Returns the caches that the engine executes: storage types of the full cache, or methods at several sizes. The run
/// has read its texts. @throws Error that names the nearest cache, if none is within --budget
CompareInput recommendation_input(const Run& run, const RecommendationGoal& goal);

}  // namespace kvs::inline compare
