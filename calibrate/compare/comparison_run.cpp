// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/comparison_run.h"

#include <algorithm>
#include <iterator>

#include "calibrate/compare/best_configs.h"
#include "calibrate/compare/comparison_result.h"
#include "calibrate/compare/configurations.h"
#include "calibrate/compare/options.h"
#include "calibrate/compare/shared_starts.h"
#include "calibrate/method_order.h"
#include "eval/cache_quality.h"
#include "run/progress.h"

namespace kvs::inline compare {
namespace {

constexpr double kQuestions = 0.1;       // share of --time for questions
constexpr double kRelativePassTime = 2;  // mean time of a configuration's pass relative to a pass without a cache

/// Returns the memory of what configurations share on a document: logits of the full cache, and states.
double shared_bytes(const Run& run, const CompareInput& input) {
  const std::size_t most = SharedStarts::max_bytes(run.decoder().model()), kinds = 4 * (1 + input.grid.composed.size()),
                    logits = logits_bytes(run.config(), input.grid.tokens - input.plan.prefix),
                    states = can_record(run.config()) ? kinds * recorded_bytes(run.config(), input.plan.prefix) : 0;
  return static_cast<double>((logits <= most ? logits : 0) + std::min(most, states));
}

Estimate estimate_of(const Run& run, const ComparisonFiles& files, const CompareInput& input,
                     std::optional<double> limit) {
  const ModelConfig& model = run.config();
  const std::size_t tokens = input.grid.tokens,
                    calibrated = input.calibration ? max_calibrated_configurations(files.calibration, input.grid) : 0,
                    passes = (1 + input.configurations.size() + calibrated) * input.documents.size();
  Estimate before;
  if (input.calibration)
    before = calibration_estimate(files.calibration, run.session(), input.grid, *input.calibration,
                                  input.documents.size() * tokens);
  return {
      .flops = kRelativePassTime * static_cast<double>(passes) * forward_flops(model, static_cast<double>(tokens)) +
               before.flops,
      .memory_bytes = std::max(before.memory_bytes, session_memory(run.session(), tokens) +
                                                        4 * full_cache_bytes(model, tokens) + shared_bytes(run, input)),
      .coded_values = before.coded_values,
      .at_most = !input.plan.all,
      .limit = limit};
}

/// Calibrates the methods that support it and appends their configurations.
void calibrate(const Run& run, const ComparisonFiles& files, RunRecords& records, CompareInput& input) {
  if (!input.calibration) return;
  std::optional<double>& seconds = input.plan.seconds;
  const auto most = seconds ? std::optional(*seconds / 2) : std::nullopt;
  CalibrationPlan plan = files.calibration;
  plan.provenance = [&](const Corpus& text) { return provenance(run.options(), run.settings(), text); };
  CalibratedConfigurations made =
      calibrated_configurations(plan, run.settings(), run.session(), input.grid, *input.calibration, records, most);
  std::ranges::move(made.configurations, std::back_inserter(input.configurations));
  input.calibrated = std::move(made.methods);
  if (seconds) *seconds -= made.seconds;
}

/// Scores the configurations. Returns results [configuration].
std::vector<ConfigurationResult> score(const Run& run, RunRecords& records, CompareInput& input) {
  const RunnableConfigurations ready =
      runnable_configurations(input.configurations, run.model(), run.backend(), input.grid.tokens, input.engine);
  Progress progress("compare: scores", 1.0, run.quiet());
  const std::vector<ConfigurationResult> scored =
      score_configurations(run.decoder(), input.documents, ready.make, input.plan, records,
                           [&](double spent, double expected) { progress.update(spent, expected); });
  std::vector<ConfigurationResult> results(input.configurations.size());
  for (std::size_t i = 0; i < scored.size(); ++i) results[ready.configurations[i]] = scored[i];
  return results;
}

std::optional<ComparisonResult::Calibration> calibration_of(const CompareInput& input) {
  if (!input.calibration) return std::nullopt;
  std::size_t most = 0;
  for (const auto& [method, count] : input.calibrated) most = std::max(most, count);
  return ComparisonResult::Calibration{input.calibration->text_sha256,
                                       input.calibration->documents.front().tokens.size(), most,
                                       input.calibration->documents.size(), input.calibrated};
}

ComparisonResult result_of(const Run& run, const ComparisonFiles& files, const CompareInput& input,
                           std::span<const ConfigurationResult> results) {
  const std::size_t tokens = input.grid.tokens;
  ComparisonResult result =
      comparison_result(input.configurations, results, {input.grid.budgets, files.losses}, run.config(), tokens);
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

std::vector<FrontConfiguration> front_of(const ComparisonResult& result, std::span<const Configuration> configurations,
                                         std::span<const ConfigurationResult> results) {
  std::vector<FrontConfiguration> front;
  for (std::size_t n = 0; n < configurations.size(); ++n)
    if (result.configurations[n].pareto_front) {
      const RaceScores& scores = results[n].scores;
      front.push_back({n, &configurations[n], result.configurations[n].budget,
                       scores.seconds / static_cast<double>(scores.kl.size())});
    }
  return front;
}

/// Times the front. @param is_asked  true: half of the time is kept for questions
std::optional<ComparisonSpeeds> speeds_of_front(const Run& run, const CompareInput& input,
                                                std::span<const FrontConfiguration> front,
                                                std::optional<double> seconds, bool is_asked) {
  if (input.decode == 0) return std::nullopt;
  if (seconds && is_asked) *seconds /= 2;
  return time_pareto_front(run, input.documents.front(), input.decode, front, seconds);
}

/// Writes all files. Returns what is printed. @param speeds  nothing: the front was not timed
Conclusion write(Run& run, const ComparisonFiles& files, const CompareInput& input, const ComparisonResult& result,
                 const std::optional<ComparisonSpeeds>& speeds, const Conclude& conclude) {
  OutputSet staged;
  if (speeds) staged.add(files.speeds(), dump_json(to_json(*speeds)) + "\n");
  const Provenance record = run.provenance();
  BestConfigs configs(result, input.configurations, run.model(), record,
                      input.calibration ? &*input.calibration : nullptr);
  files.for_each_choice(result, [&](const auto& one, const auto& path) { configs.add(one, path, staged); });
  const Json json = to_json(result);
  Conclusion conclusion = conclude
                              ? conclude(result, configs, staged)
                              : Conclusion{json, "compare: " + files.out.string() + '\n' + to_text(result, speeds)};
  write_outputs(staged, files.out, json, run.settings(), [&] {
    return trade_points(result).empty() ? RunFigures()
                                        : RunFigures{{"_pareto", comparison_chart(result, method_order())}};
  });
  if (!speeds) std::filesystem::remove(files.speeds());  // left by the run that --force replaces
  run.remove_state();
  return conclusion;
}

}  // namespace

CompareInput compare_input(const Run& run, CompareGrid grid, const Engine* engine, double timed) {
  const Options& options = run.options();
  CompareInput input;
  input.grid = std::move(grid);
  input.engine = engine;
  input.documents = documents_in_turn(run.corpus());
  if (options.has("time"))
    input.plan.seconds = (1 - timed - (options.has("task") ? kQuestions : 0)) * compare_seconds(options);
  input.plan.prefix = input.grid.prefix;
  input.grid.tokens = input.documents.front().size();
  Progress progress("compare: sizes", input.grid.methods.size(), run.quiet());
  input.configurations = grid_configurations(input.grid, run.config(), progress.counter());
  if (options.has("task")) input.task.emplace(run);
  return input;
}

void run_comparison(Run& run, const ComparisonFiles& files, CompareInput input, const ComparisonClock& clock,
                    const Conclude& conclude) {
  RunRecords records(run.journal(), &run.ranks());
  run.print_estimate(estimate_of(run, files, input, clock.limit()));
  if (input.plan.seconds) *input.plan.seconds -= clock.spent();
  calibrate(run, files, records, input);
  const std::vector<ConfigurationResult> results = score(run, records, input);
  if (!run.is_root()) return;

  ComparisonResult result = result_of(run, files, input, results);
  const std::vector<FrontConfiguration> front = front_of(result, input.configurations, results);
  const auto speeds = speeds_of_front(run, input, front, clock.left(records), input.task.has_value());
  result.timed = speeds.has_value();
  if (input.task) {
    const FrontAnswers answers =
        ask_pareto_front(run, *input.task, input.grid.tokens, front, records, clock.left(records));
    result.full.retrieval = answers.full;
    for (std::size_t i = 0; i < front.size(); ++i)
      result.configurations[front[i].index].retrieval = answers.configurations[i];
  }
  const Conclusion conclusion = write(run, files, input, result, speeds, conclude);
  run.print(conclusion.json, conclusion.text);
}

}  // namespace kvs::inline compare
