#include "cli/kvcalibrate/eval_task.h"

#include <algorithm>
#include <array>
#include <optional>

#include "calibrate/registry.h"
#include "cli/kvcalibrate/cache_choice.h"
#include "cli/kvcalibrate/task_input.h"
#include "core/error.h"
#include "eval/cache_quality.h"
#include "model/model_json.h"
#include "results/retrieval_chart.h"
#include "run/progress.h"
#include "run/run.h"
#include "tasks/task_report.h"
#include "version.h"

namespace kvs {
namespace {

/// Options of eval that say how texts are scored.
constexpr std::array<std::string_view, 7> kTextScoringOptions{"tokens-file", "window", "documents",  "windows",
                                                              "stride",      "decode", "save-config"};

TaskCache task_cache(const Options& options, const ModelSource& source) {
  const Method* named = options.has("method") ? find_method(options.text("method")) : nullptr;
  // Prefixes are as long as the questions will be.
  TaskCache cache{
      choose_cache(options, source, nullptr,
                   named != nullptr && named->prefill == Prefill::kWhole ? prefix_parameters(kLongestQuestion).values
                                                                         : Json::object()),
      options.text("prefill")};
  const Method* method = cache.choice.method;
  if (method->prefill == Prefill::kNone && cache.prefill != "stepwise")
    throw Error(ErrorCode::kUsage, "--prefill",
                "found " + cache.prefill + ", expected stepwise with a config of " + std::string(method->name));
  if (method->prefill == Prefill::kWhole && cache.prefill == "stepwise") {
    if (options.given("prefill"))
      throw Error(ErrorCode::kUsage, "--prefill",
                  "found stepwise, expected context or prompt: the method acts at a prefix's end alone");
    cache.prefill = "context";
  }
  return cache;
}

/// What is asked, and how.
struct TaskQuestions {
  TaskCache cache;
  TaskInput input;
  TaskPlan plan;
  std::size_t longest = 0;  // tokens of a question
};

Json result_json(const TaskQuestions& questions, std::span<const TaskResult> results, const Run& run) {
  const auto& [choice, prefill] = questions.cache;
  Json result{{"method", choice.name()},
              {"task", run.options().text("task")},
              {"prefill", prefill},
              {"bos", bos_json(questions.plan.bos)}};
  result.update(task_json(results));
  if (!choice.loaded || !choice.given().empty()) result["parameters"] = choice.given();
  if (choice.is_full() || result.contains("full")) result["fails_with_full_cache"] = is_failed(result);
  Json samples = Json::array();
  for (const TaskResult& sample : results) samples.push_back(to_json(sample));
  result.update(Json{{"samples", samples},
                     {"dtype", name_of(run.backend().compute_type())},
                     {"model", model_json(run.config(), run.model().sha256(), questions.longest)},
                     {"text_sha256", questions.input.sha256},
                     {"command", run.options().command()},
                     {"tool_version", kToolVersion}});
  if (choice.shared_bytes() > 0) result["shared_bytes"] = choice.shared_bytes();
  result.update(digests_of_configs(run.options()));
  return result;
}

/// What task_summary() says, and the bytes that all sequences share.
std::string summary(const std::string& cache, const Json& result, std::size_t longest) {
  std::string text = cache + ": " + task_summary(result);
  if (result.contains("shared_bytes"))
    text += "  besides the cache, " + shared_bytes_text(result.at("shared_bytes"), longest) + '\n';
  return text;
}

std::vector<TaskResult> ask_all(const TaskQuestions& questions, Run& run) {
  const auto& [cache, input, plan, longest] = questions;
  const bool compare = !cache.choice.is_full() && run.options().text("against") == "full";
  // Each question goes in twice: with the right answer, and to be answered.
  run.print_estimate({.flops = (compare ? 4 : 2) * static_cast<double>(input.samples.size()) *
                               forward_flops(run.config(), static_cast<double>(longest)),
                      .memory_bytes = session_memory(run.session(), longest)});
  Progress progress("eval: " + run.options().text("task"), input.samples.size(), run.quiet());
  CachedAnswers model(run.decoder(), prompt_cache_maker(cache, run.backend(), run.config(), longest));
  const TaskCache full_cache{full_choice(), "stepwise"};
  CachedAnswers full(run.decoder(), prompt_cache_maker(full_cache, run.backend(), run.config(), longest));
  return run_task(input.samples, plan, model, compare ? &full : nullptr, progress.counter(), run.journal());
}

/// Whether a map of the result has been drawn: all questions have depths.
bool has_map(const Json& result) {
  return std::ranges::all_of(result.at("samples"), [](const Json& sample) { return sample.contains("depth"); });
}

RunFigures figures_of(const CacheChoice& choice, std::span<const TaskResult> results, const Run& run) {
  RetrievalMap map = retrieval_map(results);
  map.heading = run.config().name + ", " + run.options().text("task") + ": " + choice.name();
  return map.depths.empty() ? RunFigures() : RunFigures{{"_map", retrieval_chart(map)}};
}

TaskQuestions make_questions(const Run& run, TaskCache cache, const Tokenizer& tokenizer) {
  const Options& options = run.options();
  TaskInput input = task_input(options, run.settings(), run.config(), tokenizer);
  const TaskPlan plan{.tokenizer = tokenizer,
                      .rule = input.rule,
                      .answer_tokens = input.answer_tokens,
                      .bos = chosen_bos(tokenizer, bos_choice(options))};
  const std::size_t longest = longest_question(input, plan, run.config(), run.settings(), options.text("task"));
  return {std::move(cache), std::move(input), plan, longest};
}

}  // namespace

void add_question_options(OptionTable& table) {
  table.group("Tasks")
      .value("task", "NAME", "ask questions: a task of the list above, or a FILE.jsonl")
      .value("lengths", "LIST", "tokens of a question with its answer", "1024")
      .from(1, kLongestQuestion)
      .value("depths", "LIST", "of passkey and needle: where they are hidden, in percent", "0,25,50,75,100")
      .from(0, 100)
      .value("samples", "N", "questions of each length and depth", "1")
      .from(1, kMaxSamples)
      .value("answer-tokens", "N", "most tokens of an answer (default: the task's; 32 of a file's)")
      .from(1, kMaxSamples)
      .check([](const Options& options) {
        require_partner(options, std::array<std::string_view, 1>{"seed"}, std::array<std::string_view, 1>{"task"});
      });
  add_seed_option(table, "of what questions are made of");
}

void add_task_options(OptionTable& table) {
  add_question_options(table);
  table.value(
      "prefill", "stepwise|context|prompt",
      "stepwise: a method acts while a question goes in; the others: these tokens go in whole and are compressed "
      "at their end (default: context for methods that need it)",
      "stepwise");
}

void check_task_options(const Options& options) {
  refuse_options(options, kTextScoringOptions, "--task");
  check_question_options(options);
  const Json settings = parse_settings(options.list("set"), "--set");
  for (const char* name : {"prefix", "prefill"})
    if (settings.contains(name))
      throw Error(ErrorCode::kUsage, std::string("--set ") + name, "cannot be combined with --task; see --prefill");
  const Method* const method = options.has("method") ? find_method(options.text("method")) : nullptr;
  if (method != nullptr && method->prefill == Prefill::kWhole && options.given("prefill") &&
      options.text("prefill") == "stepwise")
    throw Error(ErrorCode::kUsage, "--prefill",
                "found stepwise, expected context or prompt: the method acts at a prefix's end alone");
}

std::string task_lines() {
  std::string lines = "Tasks:\n";
  for (const TaskDefinition* task : task_definitions())
    lines += "  " + std::string(task->name) + ": " + std::string(task->summary) +
             (task->needs_haystack ? " (--text)" : "") + '\n';
  return lines;
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
  TaskCache cache = task_cache(options, run.model());
  const auto tokenizer = load_tokenizer(run.model(), run.settings());
  const TaskQuestions questions = make_questions(run, std::move(cache), *tokenizer);
  Corpus read;  // what says which texts a run is of
  read.text_sha256 = questions.input.sha256;
  run.identity() = run_identity(options, run.model(), read);
  run.identity()["bos"] = bos_json(questions.plan.bos);
  if (run.is_finished([&](const Json& json) { return has_map(json) ? figures : std::vector<std::filesystem::path>(); }))
    return;
  run.load();
  const std::vector<TaskResult> results = ask_all(questions, run);
  const Json result = result_json(questions, results, run);
  if (result.value("fails_with_full_cache", false))
    run.note("the model misses most questions with the full cache: compare the log-likelihoods");
  run.finish(result, summary(questions.cache.choice.name(), result, questions.longest),
             [&] { return figures_of(questions.cache.choice, results, run); });
}

}  // namespace kvs
