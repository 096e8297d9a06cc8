// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "calibrate/compare/calibrated_configurations.h"
#include "calibrate/compare/grid.h"
#include "export/engines/engine.h"
#include "options/options.h"
#include "run/text_input.h"

namespace kvs::inline compare {

// The values of the options of `kvcalibrate compare`. All functions throw Error kUsage naming the option.

void add_compare_options(OptionTable& table);
/// Checks all values that can be checked before a file is opened. Rejects options that have no effect.
void check_compare_options(const Options& options);
/// Returns the engine of --engine; nullptr without it.
const Engine* compared_engine(const Options& options);
/// Returns the grid of the storage types and methods that an engine executes, without budgets.
/// @param composed  storage types of the methods' rows, if it executes methods
CompareGrid engine_grid(const Engine& engine, std::vector<std::string> composed);
/// Returns the grid of --methods, --budgets, --types and --types-with-methods, without documents.
CompareGrid compare_grid(const Options& options);
/// Returns the entries of --methods that write configs; none without --calibration-text.
std::vector<const SeriesMethod*> compared_series(const Options& options);
/// Returns the values of --max-ppl-increase in ascending order. If there are none, no smallest caches are named.
std::vector<double> compare_losses(const Options& options);
/// Returns --time in seconds.
double compare_seconds(const Options& options);
/// Returns --prefix, or its default for documents of `tokens` tokens.
std::size_t compare_prefix(const Options& options, std::size_t tokens);
/// Returns --timed-tokens, which is at most `most` tokens.
std::size_t compare_decode(const Options& options, std::size_t most);
/// Loads the texts of --calibration-text. None of their windows may be a window of `scored`.
Corpus load_calibration(const Options& options, const RunOptions& run, const ModelSource& model, const Corpus& scored);
/// Returns the plan of the calibrations in --calibration-dir or its default, without the provenance.
CalibrationPlan calibration_plan(const Options& options);

}  // namespace kvs::inline compare
