#include "cli/kvcalibrate/eval_task.h"

#include <algorithm>
#include <array>
#include <optional>

#include "calibrate/registry.h"
#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/kvcalibrate/cache_choice.h"
#include "cli/kvcalibrate/task_input.h"
#include "core/error.h"
#include "eval/evaluation_report.h"
#include "io/file.h"
#include "model/model_json.h"
#include "results/retrieval_chart.h"
#include "tasks/task_report.h"
#include "version.h"

namespace kvs {
namespace {

constexpr std::size_t kMostTaskBytes = std::size_t{1} << 30;

/// Options of eval that say how texts are scored.
constexpr std::array<std::string_view, 7> kTextScoringOptions{"tokens-file", "window", "documents",  "windows",
                                                              "stride",      "decode", "save-config"};

ParameterSource prefix_parameters(std::size_t tokens) {
  return {{{"prefix", tokens}, {"prefill", tokens > 0 ? "whole" : "stepwise"}}, "--prefill: ", ErrorCode::kUsage};
}

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
                "found " + cache.prefill + ", expected stepwise with a config of factors");
  if (method->prefill == Prefill::kWhole && cache.prefill == "stepwise") {
    if (options.given("prefill"))
      throw Error(ErrorCode::kUsage, "--prefill",
                  "found stepwise, expected context or prompt: the method acts at a prefix's end alone");
    cache.prefill = "context";
  }
  return cache;
}

Json result_json(const Options& options, const TaskInput& input, const TaskPlan& plan, const TaskCache& cache,
                 const ModelSession& session, std::size_t longest, std::span<const TaskResult> results) {
  const auto& [choice, prefill] = cache;
  Json result{
      {"method", choice.name()}, {"task", options.text("task")}, {"prefill", prefill}, {"bos", bos_json(plan.bos)}};
  result.update(task_json(results));
  if (!choice.loaded || !choice.given().empty()) result["parameters"] = choice.given();
  if (choice.is_full() || result.contains("full")) result["fails_with_full_cache"] = is_failed(result);
  Json samples = Json::array();
  for (const TaskResult& sample : results) samples.push_back(to_json(sample));
  result.update(Json{{"samples", samples},
                     {"dtype", name_of(session.backend->compute_type())},
                     {"model", model_json(session.config(), session.source->sha256(), longest)},
                     {"text_sha256", input.sha256},
                     {"command", options.command()},
                     {"tool_version", kToolVersion}});
  if (choice.shared_bytes() > 0) result["shared_bytes"] = choice.shared_bytes();
  result.update(digests_of_configs(options));
  return result;
}

/// What task_summary() says, and the bytes that all sequences share.
std::string summary(const std::string& cache, const Json& result, std::size_t longest) {
  std::string text = cache + ": " + task_summary(result);
  if (result.contains("shared_bytes"))
    text += "  besides the cache, " + shared_bytes_text(result.at("shared_bytes"), longest) + '\n';
  return text;
}

std::vector<TaskResult> ask_all(const Options& options, const RunOptions& run, const TaskInput& input,
                                const TaskPlan& plan, const TaskCache& cache, const ModelSession& session,
                                std::size_t longest, std::optional<Journal>& journal) {
  const bool compare = !cache.choice.is_full() && options.text("against") == "full";
  // Each question goes in twice: with the right answer, and to be answered.
  announce({.flops = (compare ? 4 : 2) * static_cast<double>(input.samples.size()) *
                     forward_flops(session.config(), static_cast<double>(longest)),
            .memory_bytes = session_memory(session, longest)},
           *session.backend, run);

  Progress progress("eval: " + options.text("task"), static_cast<double>(input.samples.size()), run.quiet);
  CachedAnswers model(*session.decoder, prompt_cache_maker(cache, session, longest));
  const TaskCache full_cache{full_choice(), "stepwise"};
  CachedAnswers full(*session.decoder, prompt_cache_maker(full_cache, session, longest));
  return run_task(
      input.samples, plan, model, compare ? &full : nullptr,
      [&](std::size_t done) { progress.update(static_cast<double>(done)); }, journal ? &*journal : nullptr);
}

/// Whether a map of the result has been drawn: all questions have depths.
bool has_map(const Json& result) {
  return std::ranges::all_of(result.at("samples"), [](const Json& sample) { return sample.contains("depth"); });
}

RunFigures figures_of(const CacheChoice& choice, const ModelSession& session, const Json& result,
                      std::span<const TaskResult> results) {
  RetrievalMap map = retrieval_map(results);
  map.heading = session.config().name + ", " + result.at("task").get<std::string>() + ": " + choice.name();
  return map.depths.empty() ? RunFigures() : RunFigures{{"_map", retrieval_chart(map)}};
}

}  // namespace

std::function<Cache(const Prompt&)> prompt_cache_maker(const TaskCache& cache, const ModelSession& session,
                                                       std::size_t longest) {
  const auto& [choice, prefill] = cache;
  if (choice.method->prefill == Prefill::kNone)
    return [make = cache_maker(choice, session, longest)](const Prompt&) { return make(); };
  return [&session, cache](const Prompt& prompt) {
    CacheChoice made = cache.choice;
    made.parameters.push_back(prefix_parameters(cache.prefill == "stepwise"  ? 0
                                                : cache.prefill == "context" ? prompt.context
                                                                             : prompt.ids.size()));
    return cache_maker(std::move(made), session, prompt.ids.size())();
  };
}

void add_question_options(OptionTable& table) {
  table.group("Tasks")
      .value("task", "NAME", "ask questions: a task of the list above, or a FILE.jsonl")
      .value("lengths", "LIST", "tokens of a question with its answer", "1024")
      .from(1, kLongestQuestion)
      .value("depths", "LIST", "of passkey and needle: where they are hidden, in percent", "0,25,50,75,100")
      .from(0, 100)
      .value("samples", "N", "questions of each length and depth", "1")
      .from(1, kMostSamples)
      .value("answer-tokens", "N", "most tokens of an answer (default: the task's; 32 of a file's)")
      .from(1, kMostSamples)
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

void run_eval_task(const Options& options, const RunOptions& run) {
  std::vector<std::filesystem::path> figures;
  if (options.has("out")) {
    figures = figure_paths(options.text("out"), "_map");
    check_outputs(options.text("out"), figures, options, run);
  }
  std::optional<OutputLock> lock;
  if (options.has("out")) lock.emplace(options.text("out"), run.lock, figures);
  auto source = open_model(options);
  const TaskCache cache = task_cache(options, *source);
  const auto tokenizer = load_tokenizer(*source, run);
  const TaskInput input = task_input(options, run, source->config(), *tokenizer);
  const TaskPlan plan{.tokenizer = *tokenizer,
                      .rule = input.rule,
                      .answer_tokens = input.answer_tokens,
                      .bos = chosen_bos(*tokenizer, bos_choice(options))};
  const std::size_t longest = longest_question(input, plan, source->config(), run, options.text("task"));

  Corpus read;  // what says which texts a run is of
  read.text_sha256 = input.sha256;
  Json identity = run_identity(options, *source, read);
  identity["bos"] = bos_json(plan.bos);
  if (options.has("out")) {
    const std::string out = options.text("out");
    if (is_finished(
            out, out, run, [&](const Json& json) { return is_of_run(json, "", options, identity); },
            [&](const Json& json) { return has_map(json) ? figures : std::vector<std::filesystem::path>(); }))
      return print_result(run, parse_json(read_text_file(out, kMostTaskBytes), out), out + ": finished before\n");
    check_journal(out, run);
  }
  ModelSession session = load_model(std::move(source), options, run);
  std::optional<Journal> journal;
  if (options.has("out")) journal.emplace(open_journal(options.text("out"), identity, run));
  const std::vector<TaskResult> results = ask_all(options, run, input, plan, cache, session, longest, journal);
  const Json result = result_json(options, input, plan, cache, session, longest, results);
  if (result.value("fails_with_full_cache", false))
    remark("note: the model misses most questions with the full cache: compare the log-likelihoods", run.quiet);
  if (options.has("out"))
    write_outputs(options.text("out"), result, run, [&] { return figures_of(cache.choice, session, result, results); });
  if (journal) journal->remove();
  print_result(run, result, summary(cache.choice.name(), result, longest));
}

}  // namespace kvs
