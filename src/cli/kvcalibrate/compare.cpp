// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "calibrate/compare/comparison_run.h"
#include "calibrate/compare/configurations.h"
#include "calibrate/compare/options.h"
#include "cli/kvcalibrate/commands.h"

namespace kvs::inline cli {
namespace {

constexpr double kTimes = 0.1;  // share of --time for the front's speeds

OptionTable compare_options() {
  OptionTable table(
      "kvcalibrate compare --model PATH --text PATH --out FILE [options]",
      "Compares methods and storage types with the full cache at equal bytes. The result holds perplexity, KL "
      "divergence, first choices, the Pareto front, the best cache of each budget and the smallest cache of each loss. "
      "Clearly worse configurations are dropped early.",
      {"kvcalibrate compare --model SmolLM2.gguf --text book.txt --window 2048 --documents 8 --time 60m --out c.json",
       "kvcalibrate compare --model SmolLM2.gguf --text book.txt --calibration-text other.txt --time 60m --out c.json",
       "kvcalibrate compare --model SmolLM2.gguf --text book.txt --engine llama.cpp --time 30m --out llama.json",
       "kvcalibrate compare --model SmolLM2.gguf --text book.txt --config elitekv.json --best-dir best --out c.json"});
  add_compare_options(table);
  add_question_options(table, TextUse::kScored);
  add_model_run_options(table, true);
  table.check(check_compare_options);
  return table;
}

/// Adds the other inputs of the run to its identity.
void add_identity(Run& run, const std::optional<Corpus>& calibration) {
  if (calibration) {
    run.identity()["calibration_text_sha256"] = calibration->text_sha256;
    run.identity()["calibration_tokens"] = digest_of_tokens(*calibration);
  }
  if (!compared_series(run.options()).empty()) add_decompositions(run.identity());
}

/// Adds the caches of configs, the text to calibrate on, and the tokens to time.
CompareInput input_of(const Run& run, CompareGrid grid) {
  const Options& options = run.options();
  grid.prefix = compare_prefix(options, run.tokens());
  CompareInput input = compare_input(run, std::move(grid), compared_engine(options), kTimes);
  input.plan.all = options.flag("no-early-stop");
  input.decode = compare_decode(options, run.tokens() - input.grid.prefix - 1);
  for (Configuration& one : file_configurations(options.list("config"), input.grid, run.model()))
    input.configurations.push_back(std::move(one));
  if (!options.list("calibration-text").empty())
    input.calibration = load_calibration(options, run.settings(), run.model(), run.corpus());
  return input;
}

ComparisonFiles files_of(const Options& options, const CompareGrid& grid) {
  return {.out = options.text("out"),
          .best = options.has("best-dir") ? options.text("best-dir") : "",
          .budgets = grid.budgets,
          .losses = compare_losses(options),
          .configs = options.list("config"),
          .calibration = calibration_plan(options)};
}

void run_compare(const Options& options) {
  const ComparisonClock clock(options.has("time") ? std::optional(compare_seconds(options)) : std::nullopt);
  const CompareGrid grid = compare_grid(options);
  const ComparisonFiles files = files_of(options, grid);
  RunOutputs outputs{.main = files.out, .others = files.others(), .state = RunOutputs::State::kJournal};
  std::optional<OutputFolder> best, calibrated;  // destroyed after the locks in these folders
  Run run(options);
  std::vector<std::filesystem::path> all = outputs.others;
  all.insert(all.begin(), files.out);
  check_inputs_spared(all, options);
  if (!files.best.empty()) best.emplace(files.best);
  if (!files.calibration.series.empty()) calibrated.emplace(files.calibration.folder);
  run.take_outputs(std::move(outputs));

  run.open_model();
  run.read_texts();
  CompareInput input = input_of(run, grid);
  add_identity(run, input.calibration);
  if (run.is_finished([&](const Json& json) {
        return files.written(from_json<ComparisonResult>({json, files.out.string()}));
      }))
    return;
  run.load();
  run_comparison(run, files, std::move(input), clock);
}

}  // namespace

const Subcommand kCompareCommand{"compare", compare_options, run_compare, true};

}  // namespace kvs::inline cli
