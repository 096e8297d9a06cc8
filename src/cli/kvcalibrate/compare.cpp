#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "calibrate/compare/best_configs.h"
#include "calibrate/compare/calibrated_cells.h"
#include "calibrate/compare/cells.h"
#include "calibrate/compare/comparison_result.h"
#include "calibrate/compare/front.h"
#include "calibrate/registry.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/compare_options.h"
#include "cli/kvcalibrate/task_input.h"
#include "core/error.h"
#include "eval/cache_quality.h"
#include "io/digest.h"
#include "run/progress.h"
#include "run/run.h"

namespace kvs {
namespace {

constexpr double kCellPasses = 2;  // what a cell's pass takes relative to one without a cache, in the mean
constexpr double kTimes = 0.1, kQuestions = 0.1;  // of --time, for the front's

/// The configs that calibrations write for the budgets, and the tensors beside one of them.
std::vector<std::filesystem::path> calibrated_configs(const Options& options, std::span<const double> budgets) {
  const CalibrationPlan plan = calibration_plan(options);
  std::vector<std::filesystem::path> paths;
  for (const SeriesMethod* const method : plan.series)
    for (const double budget : budgets) paths.push_back(plan.config(method->name, budget));
  return paths;
}
std::filesystem::path tensors_of(std::filesystem::path config) { return config.replace_extension(".safetensors"); }

/// The files that the configs of --config and of calibrations name, with what they come from, by their names in
/// --best-dir.
/// @throws Error kUsage where two that differ have one name
std::map<std::filesystem::path, std::filesystem::path> files_to_copy(const Options& options,
                                                                     std::span<const double> budgets) {
  const std::filesystem::path folder = options.text("best-dir");
  std::map<std::filesystem::path, std::filesystem::path> copies;
  for (const std::filesystem::path& config : calibrated_configs(options, budgets)) {
    const std::filesystem::path tensors = tensors_of(config);
    copies[folder / tensors.filename()] = tensors;
  }
  for (const std::string& path : options.list("config")) {
    const Json config = read_config(path);
    for (const Json& file : config.at("files")) {
      const std::string name = file.at("path");
      const auto from = std::filesystem::path(path).parent_path() / name;
      const auto [found, fresh] = copies.emplace(folder / name, from);
      if (!fresh && (found->second.parent_path() == calibration_plan(options).folder ||
                     sha256_of_file(found->second) != sha256_of_file(from)))
        throw Error(ErrorCode::kUsage, from.string(),
                    "has the name of " + found->second.string() + ", expected names of their own for --best-dir");
    }
  }
  return copies;
}

std::filesystem::path best_path(const Options& options, double budget) {
  return std::filesystem::path(options.text("best-dir")) / share_file("best", budget);
}
std::filesystem::path smallest_path(const Options& options, double loss) {
  return std::filesystem::path(options.text("best-dir")) / share_file("smallest", loss);
}

/// Calls `use` with each chosen cell and the config that --best-dir has of it.
void for_each_choice(const Options& options, const ComparisonResult& result,
                     const std::function<void(const std::optional<std::size_t>&, const std::filesystem::path&)>& use) {
  for (const BestChoice& one : result.best) use(one.cell, best_path(options, one.budget));
  for (const SmallestChoice& one : result.smallest) use(one.cell, smallest_path(options, one.loss));
}

std::filesystem::path speed_path(const Options& options) {
  return sibling_path(options.text("out"), "_speed") += ".json";
}

std::vector<FrontCell> front_of(const ComparisonResult& result, std::span<const CompareCell> cells,
                                std::span<const CellResult> results) {
  std::vector<FrontCell> front;
  for (std::size_t n = 0; n < cells.size(); ++n)
    if (result.cells[n].front) {
      const CellScores& scores = results[n].scores;
      front.push_back({n, &cells[n], result.cells[n].budget, scores.seconds / static_cast<double>(scores.kl.size())});
    }
  return front;
}

/// Every file that the run writes beside `out` and may find there.
std::vector<std::filesystem::path> other_outputs(const Options& options, std::span<const double> budgets) {
  std::vector<std::filesystem::path> paths = figure_paths(options.text("out"), "_pareto");
  paths.push_back(speed_path(options));
  if (options.has("best-dir")) {
    for (const double budget : budgets) paths.push_back(best_path(options, budget));
    for (const double loss : compare_losses(options)) paths.push_back(smallest_path(options, loss));
    for (const auto& [to, from] : files_to_copy(options, budgets)) paths.push_back(to);
  }
  for (const std::filesystem::path& config : calibrated_configs(options, budgets)) {
    paths.push_back(config);
    paths.push_back(tensors_of(config));
  }
  return paths;
}

/// Whether a cell's config is one that this comparison writes.
bool is_calibrated_here(const Options& options, const ComparedCell& cell) {
  return cell.config && !compared_series(options).empty() &&
         std::filesystem::path(*cell.config).parent_path() == calibration_plan(options).folder;
}

/// Those of them that a run with this result has written.
std::vector<std::filesystem::path> written_outputs(const Options& options, const ComparisonResult& result) {
  std::vector<std::filesystem::path> paths;
  if (!trade_points(result).empty()) paths = figure_paths(options.text("out"), "_pareto");
  if (result.timed) paths.push_back(speed_path(options));
  for (const ComparedCell& cell : result.cells)
    if (is_calibrated_here(options, cell)) {
      paths.emplace_back(*cell.config);
      paths.push_back(tensors_of(paths.back()));
    }
  if (options.has("best-dir"))
    for_each_choice(options, result, [&](const auto& cell, const auto& path) {
      if (cell) paths.push_back(path);
    });
  return paths;
}

/// Adds what else the run reads to its identity.
void add_identity(Run& run, const std::optional<Corpus>& calibration) {
  if (calibration) {
    run.identity()["calibration_text_sha256"] = calibration->text_sha256;
    run.identity()["calibration_tokens"] = digest_of_tokens(*calibration);
  }
  if (!compared_series(run.options()).empty()) add_decompositions(run.identity());
}

/// What is compared on what.
struct CompareInput {
  CompareGrid grid;
  ComparisonPlan plan;
  std::optional<Corpus> calibration;
  std::vector<std::vector<std::int32_t>> documents;    // of the run, its texts taking turns
  std::size_t decode = 0;                              // tokens that the front is timed on
  std::vector<CompareCell> cells;                      // those that are calibrated join when they are
  std::map<std::string, std::size_t> calibrated = {};  // documents that each method was calibrated on
};

std::optional<ComparisonResult::Calibration> calibration_of(const CompareInput& input) {
  if (!input.calibration) return std::nullopt;
  std::size_t most = 0;
  for (const auto& [method, count] : input.calibrated) most = std::max(most, count);
  return ComparisonResult::Calibration{input.calibration->text_sha256,
                                       input.calibration->documents.front().tokens.size(), most,
                                       input.calibration->documents.size(), input.calibrated};
}

CompareInput compare_input(const Run& run) {
  const Options& options = run.options();
  CompareInput input;
  input.grid = compare_grid(options);
  input.plan.all = options.flag("full");
  if (options.has("time"))
    input.plan.seconds = (1 - kTimes - (options.has("task") ? kQuestions : 0)) * compare_seconds(options);
  input.documents = documents_in_turn(run.corpus());
  if (!options.list("calibration-text").empty())
    input.calibration = load_calibration(options, run.settings(), run.model(), run.corpus());
  CompareGrid& grid = input.grid;
  grid.tokens = input.documents.front().size();
  grid.prefix = input.plan.prefix = compare_prefix(options, grid.tokens);
  input.decode = compare_decode(options, grid.tokens - grid.prefix - 1);
  if (options.has("task")) (void)TaskInput(run);
  input.cells = compare_cells(grid, run.config());
  for (CompareCell& cell : config_cells(options.list("config"), grid, run.model()))
    input.cells.push_back(std::move(cell));
  return input;
}

Estimate estimate_of(const CompareInput& input, const Run& run) {
  const Options& options = run.options();
  const ModelConfig& model = run.config();
  const std::size_t tokens = input.grid.tokens,
                    calibrated = input.calibration ? max_calibrated_cells(calibration_plan(options), input.grid) : 0,
                    passes = (1 + input.cells.size() + calibrated) * input.documents.size();
  Estimate before;
  if (input.calibration)
    before = calibration_estimate(calibration_plan(options), run.session(), input.grid, *input.calibration,
                                  input.documents.size() * tokens);
  return {.flops = kCellPasses * static_cast<double>(passes) * forward_flops(model, static_cast<double>(tokens)) +
                   before.flops,
          .memory_bytes = std::max(before.memory_bytes,
                                   session_memory(run.session(), tokens) + 4 * full_cache_bytes(model, tokens)),
          .coded_values = before.coded_values,
          .at_most = !input.plan.all,
          .limit = options.has("time") ? std::optional(compare_seconds(options)) : std::nullopt};
}

/// --time from the start of the program on.
class Clock {
 public:
  explicit Clock(const Options& options) {
    if (options.has("time")) seconds_ = compare_seconds(options);
  }
  double spent() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  /// What is left after what a run before took, too; nothing without --time.
  std::optional<double> left(const RunRecords& records) const {
    if (!seconds_) return std::nullopt;
    return *seconds_ - spent() - records.replayed_seconds();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<double> seconds_;
};

/// Calibrates the methods that can be; their cells join the others.
void calibrate(const Run& run, RunRecords& records, CompareInput& input) {
  if (!input.calibration) return;
  std::optional<double>& seconds = input.plan.seconds;
  const auto most = seconds ? std::optional(*seconds / 2) : std::nullopt;
  CalibrationPlan plan = calibration_plan(run.options());
  plan.provenance = [&](const Corpus& text) { return provenance(run.options(), run.settings(), text); };
  CalibratedCells made =
      calibrated_cells(plan, run.settings(), run.session(), input.grid, *input.calibration, records, most);
  std::ranges::move(made.cells, std::back_inserter(input.cells));
  input.calibrated = std::move(made.methods);
  if (seconds) *seconds -= made.seconds;
}

/// [cell]
std::vector<CellResult> score(const Run& run, RunRecords& records, CompareInput& input) {
  const RunnableCells ready = runnable_cells(input.cells, run.model(), run.backend(), input.grid.tokens);
  Progress progress("compare: scores", 1.0, run.quiet());
  const std::vector<CellResult> scored =
      score_cells(run.decoder(), input.documents, ready.make, input.plan, records,
                  [&](double spent, double expected) { progress.update(spent, expected); });
  std::vector<CellResult> results(input.cells.size());
  for (std::size_t i = 0; i < scored.size(); ++i) results[ready.cells[i]] = scored[i];
  return results;
}

ComparisonResult result_of(const Run& run, const CompareInput& input, std::span<const CellResult> results) {
  const std::size_t tokens = input.grid.tokens;
  const std::vector<double> losses = compare_losses(run.options());
  ComparisonResult result = comparison_result(input.cells, results, {input.grid.budgets, losses}, run.config(), tokens);
  result.head = run.result_head("kvspectrum-comparison", tokens);
  result.inputs = run.input_digests();
  result.dtype = name_of(run.backend().compute_type());
  result.seed = run.provenance().seed;
  result.calibration = calibration_of(input);
  if (input.calibration) result.calibration_text_sha256 = input.calibration->text_sha256;
  result.documents = input.documents.size();
  result.prefix = input.plan.prefix;
  return result;
}

/// Times the front and asks it the questions, whose answers join the result. @return the times
std::optional<ComparisonSpeeds> look_at_front(const Run& run, const CompareInput& input,
                                              std::span<const CellResult> results, const Clock& clock,
                                              RunRecords& records, ComparisonResult& result) {
  const Options& options = run.options();
  const std::vector<FrontCell> front = front_of(result, input.cells, results);
  std::optional<ComparisonSpeeds> speeds;
  if (input.decode > 0) {
    std::optional<double> most = clock.left(records);
    if (most && options.has("task")) *most /= 2;
    speeds = time_front(run, input.documents.front(), input.decode, front, most);
  }
  result.timed = speeds.has_value();
  if (!options.has("task")) return speeds;
  const TaskInput asked(run);
  const FrontAnswers answers = ask_front(run, {asked.task, asked.questions.samples, asked.plan, asked.longest},
                                         input.grid.tokens, front, records, clock.left(records));
  result.full.retrieval = answers.full;
  for (std::size_t i = 0; i < front.size(); ++i) result.cells[front[i].cell].retrieval = answers.cells[i];
  return speeds;
}

/// Puts everything in place. @param speeds  nothing: the front is not timed
void write(Run& run, const CompareInput& input, const ComparisonResult& result,
           const std::optional<ComparisonSpeeds>& speeds) {
  const Options& options = run.options();
  OutputSet staged;
  if (speeds) staged.add(speed_path(options), dump_json(to_json(*speeds)) + "\n");
  const Provenance record = run.provenance();
  BestConfigs configs(result, input.cells, run.model(), record, input.calibration ? &*input.calibration : nullptr);
  if (options.has("best-dir"))
    for_each_choice(options, result, [&](const auto& cell, const auto& path) { configs.add(cell, path, staged); });
  write_outputs(staged, options.text("out"), to_json(result), run.settings(), [&] {
    return trade_points(result).empty() ? RunFigures()
                                        : RunFigures{{"_pareto", comparison_chart(result, method_order())}};
  });
  if (!speeds) std::filesystem::remove(speed_path(options));  // of what --force replaces
  run.remove_state();
}

}  // namespace

void run_compare(Arguments arguments) {
  const auto options = compare_options().parse(arguments, std::cout);
  if (!options) return;
  check_compare_options(*options);
  const Clock clock(*options);
  const std::filesystem::path out = options->text("out");
  RunOutputs outputs{.main = out,
                     .others = other_outputs(*options, compare_grid(*options).budgets),
                     .state = RunOutputs::State::kJournal};
  std::optional<OutputFolder> best, calibrated;  // go after the locks in them
  Run run(*options);
  std::vector<std::filesystem::path> all = outputs.others;
  all.insert(all.begin(), out);
  check_inputs_spared(all, *options);
  if (options->has("best-dir")) best.emplace(options->text("best-dir"));
  if (!compared_series(*options).empty()) calibrated.emplace(calibration_plan(*options).folder);
  run.take_outputs(std::move(outputs));

  run.open_model();
  run.read_texts();
  CompareInput input = compare_input(run);
  add_identity(run, input.calibration);
  if (run.is_finished([&](const Json& json) {
        return written_outputs(*options, from_json<ComparisonResult>({json, out.string()}));
      }))
    return;
  run.load();
  RunRecords records(run.journal(), &run.ranks());
  run.print_estimate(estimate_of(input, run));
  if (input.plan.seconds) *input.plan.seconds -= clock.spent();
  calibrate(run, records, input);
  const std::vector<CellResult> results = score(run, records, input);
  if (!run.is_root()) return;

  ComparisonResult result = result_of(run, input, results);
  const auto speeds = look_at_front(run, input, results, clock, records, result);
  write(run, input, result, speeds);
  run.print(to_json(result), "compare: " + out.string() + '\n' + to_text(result, speeds));
}

}  // namespace kvs
