// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "calibrate/prompt_caches.h"
#include "cli/kvcalibrate/eval.h"
#include "core/error.h"
#include "run/progress.h"
#include "run/task_input.h"
#include "tasks/task_summary.h"

namespace kvs::inline cli {
namespace {

/// Options of eval for the scoring of texts.
constexpr std::array<std::string_view, 8> kTextScoringOptions{"tokens-file", "window", "documents",   "windows",
                                                              "stride",      "decode", "save-config", "prompts"};

void check_task_options(const Options& options) {
  require_partner(options, {"prefill"}, {"task", "trace", "trace-from"});
  if (!options.has("task")) return;
  refuse_options(options, kTextScoringOptions, "--task");
  check_prefill(options, "--task");
}

TaskAnswers answers_of(const TaskCache& cache, const TaskInput& input, std::vector<TaskResult> results,
                       const Run& run) {
  const TaskSummary summary = task_summary(results);
  TaskAnswers answers{.method = cache.choice.name(),
                      .task = input.task,
                      .prefill = cache.prefill,
                      .bos = bos_record(input.plan.bos),
                      .summary = summary,
                      .parameters = cache.choice.shown_parameters(),
                      .samples = std::move(results),
                      .text_sha256 = input.questions.sha256,
                      .shared_bytes = cache.choice.shown_shared_bytes()};
  run.describe(answers, input.longest);
  if (cache.choice.is_full() || summary.reference) answers.fails_with_full_cache = summary.is_failed();
  return answers;
}

std::vector<TaskResult> ask_all(const TaskCache& cache, const TaskInput& input, Run& run) {
  const bool compare = !cache.choice.is_full() && run.options().text("reference") == "full";
  const auto& samples = input.questions.samples;
  // Each question is processed twice: once with the right answer, and once to generate an answer.
  run.print_estimate({.flops = (compare ? 4 : 2) * static_cast<double>(samples.size()) *
                               forward_flops(run.config(), static_cast<double>(input.longest)),
                      .memory_bytes = session_memory(run.session(), input.longest)});
  Progress progress("eval: " + input.task, samples.size(), run.quiet());
  CachedAnswers model(run.decoder(), prompt_cache_maker(cache, run.backend(), run.config(), input.longest));
  const TaskCache full_cache{full_choice(), "stepwise"};
  CachedAnswers full(run.decoder(), prompt_cache_maker(full_cache, run.backend(), run.config(), input.longest));
  return run_task(samples, input.plan, model, compare ? &full : nullptr, progress.counter(), run.journal());
}

/// Returns true if the result has a map, which requires that all questions have depths.
bool has_map(const Json& result) {
  return std::ranges::all_of(result.at("samples"), [](const Json& sample) { return sample.contains("depth"); });
}

RunFigures figures_of(const TaskAnswers& answers) {
  draw::Chart chart =
      retrieval_chart(answers.model.name + ", " + answers.task + ": " + answers.method, answers.samples);
  return chart.panels.empty() ? RunFigures() : RunFigures{{"_map", std::move(chart)}};
}

}  // namespace

void add_task_options(OptionTable& table) {
  add_question_options(table, TextUse::kHaystack);
  table
      .value("prefill", "stepwise|context|prompt",
             "stepwise: compress while the question is read; context, prompt: read the context or the prompt whole and "
             "compress at its end (default: context for methods that need it)",
             "stepwise")
      .check(check_task_options);
}

void run_eval_task(Run& run) {
  const Options& options = run.options();
  if (!run.ranks().alone())
    throw Error(ErrorCode::kUnsupported, "--task", "found several ranks, expected one process: they do not share it");
  std::vector<std::filesystem::path> figures;
  if (options.has("out")) {
    figures = figure_paths(options.text("out"), "_map");
    run.take_outputs({.main = options.text("out"), .others = figures, .state = RunOutputs::State::kJournal});
  }
  run.open_model();
  const TaskCache cache = prompted_cache(options, run.model());
  const TaskInput input(run);
  run.identify(input.questions.sha256);
  run.identity()["bos"] = bos_json(input.plan.bos);
  if (run.is_finished([&](const Json& json) { return has_map(json) ? figures : std::vector<std::filesystem::path>(); }))
    return;
  run.load();
  const TaskAnswers answers = answers_of(cache, input, ask_all(cache, input, run), run);
  if (answers.fails_with_full_cache.value_or(false))
    run.note("the model misses most questions with the full cache: compare the log-likelihoods");
  run.finish(to_json(answers), to_text(answers), [&] { return figures_of(answers); });
}

}  // namespace kvs::inline cli
