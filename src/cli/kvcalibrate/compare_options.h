#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "calibrate/compare/calibrated_cells.h"
#include "calibrate/compare/grid.h"
#include "options/options.h"
#include "run/model_session.h"
#include "run/text_input.h"

namespace kvs {

// What the options of `kvcalibrate compare` say. All throw Error kUsage naming the option.

OptionTable compare_options();
/// Every value that can be checked before a file is opened, and that no option is given that has no effect.
void check_compare_options(const Options& options);
/// --methods, --budgets, --types and --types-with-methods; documents are still to come.
CompareGrid compare_grid(const Options& options);
/// Those of --methods that write configs; none without --calibration-text.
std::vector<const SeriesMethod*> compared_series(const Options& options);
/// Ascending --max-ppl-increase; none: no smallest caches are named.
std::vector<double> compare_losses(const Options& options);
/// --time in seconds.
double compare_seconds(const Options& options);
/// --prefix or its default for documents of `tokens` tokens.
std::size_t compare_prefix(const Options& options, std::size_t tokens);
/// --timed-tokens, of at most `most` tokens.
std::size_t compare_decode(const Options& options, std::size_t most);
/// The texts of --calibration-text, none of whose windows is one of `scored`.
Corpus load_calibration(const Options& options, const RunOptions& run, const ModelSource& model, const Corpus& scored);
/// What is calibrated, in --calibration-dir or its default. Not its provenance.
CalibrationPlan calibration_plan(const Options& options);

}  // namespace kvs
