// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>

#include "calibrate/prompt_caches.h"
#include "cli/kvcalibrate/eval.h"
#include "eval/cache_quality.h"
#include "eval/trace_quality.h"
#include "run/progress.h"
#include "run/trace_input.h"

namespace kvs::inline cli {
namespace {

/// Options of eval for the scoring of texts, and those of its tasks.
constexpr std::array<std::string_view, 5> kOtherScoringOptions{"stride", "decode", "reference", "save-config", "task"};
constexpr const char* kFigure = "_trace";

void check_trace_options(const Options& options) {
  require_partner(options, {"temperature", "trace-out"}, {"trace"});
  require_partner(options, {"prompts"}, {"trace", "trace-from"});
  require_partner(options, {"chat"}, {"prompts"});
  if (options.has("prompts"))
    refuse_options(options, {"text", "tokens-file", "window", "documents", "windows", "invalid-utf8", "skip-bad-lines"},
                   "--prompts");
  if (options.has("chat")) refuse_options(options, {"bos"}, "--chat");
  if (!is_eval_trace(options)) return;
  if (options.has("trace-from")) refuse_options(options, {"trace"}, "--trace-from");
  const std::string beside = options.has("trace") ? "--trace" : "--trace-from";
  refuse_options(options, kOtherScoringOptions, beside);
  check_prefill(options, beside);
}

/// Registers --out with its figure, and --trace-out, as outputs.
void take_trace_outputs(Run& run) {
  const Options& options = run.options();
  std::vector<std::filesystem::path> outputs;
  if (options.has("out")) {
    outputs = figure_paths(options.text("out"), kFigure);
    outputs.insert(outputs.begin(), options.text("out"));
  }
  if (options.has("trace-out")) outputs.emplace_back(options.text("trace-out"));
  run.take_named_outputs(outputs);
}

/// Returns a function that creates the cache of a prompt.
std::function<Cache(const TokenIds&)> maker(const TaskCache& cache, const Run& run, const TraceInput& input) {
  return [make = prompt_cache_maker(cache, run.backend(), run.config(), input.length())](const TokenIds& prompt) {
    return make(Prompt{.ids = prompt, .context = prompt.size(), .answers = {}});
  };
}

TracePlan make_plan(const TaskCache& cache, const TraceInput& input, const Run& run) {
  const TraceSettings& settings = input.settings;
  return {.make = maker(cache, run, input),
          .make_full = maker({full_choice(), "stepwise"}, run, input),
          .continuation = {.count = settings.tokens,
                           .end_tokens = settings.end_tokens,
                           .choice = {settings.temperature, settings.seed.value_or(0)},
                           .length = input.length()},
          .together = trace_batch(run.config(), input.length())};
}

TraceRun continue_all(const TracePlan& plan, const TraceInput& input, Run& run) {
  const std::size_t together = std::min(plan.together, input.prompts.size());
  run.print_estimate(
      {.flops = static_cast<double>(input.prompts.size()) * trace_flops(run.config(), input.length()),
       .memory_bytes = session_memory(run.session(), input.length()) +
                       2 * static_cast<double>(together) * full_cache_bytes(run.config(), input.length())});
  Progress progress("eval: traces", input.prompts.size(), run.quiet());
  return run_traces(run.decoder(), input.prompts, input.traces, plan, progress.counter(), run.journal(), run.ranks());
}

TraceResult result_of(const TaskCache& cache, const TraceInput& input, const TraceRun& found, const Run& run) {
  std::vector<Continuation> traces;
  traces.reserve(found.outcomes.size());
  for (const TraceOutcome& outcome : found.outcomes) traces.push_back(outcome.trace);
  TraceResult result{.method = cache.choice.name(),
                     .prefill = cache.prefill,
                     .settings = input.settings,
                     .quality = trace_quality(input.prompts, found.outcomes, run.config(), input.settings.tokens),
                     .parameters = cache.choice.shown_parameters(),
                     .prompts = input.record,
                     .trace_sha256 = digest_of_traces(traces),
                     .shared_bytes = cache.choice.shown_shared_bytes()};
  run.describe(result, input.length());
  return result;
}

RunFigures figures_of(const TraceResult& result) {
  return {{kFigure, trace_chart(result.model.name + ": " + result.method, result.quality)}};
}

/// Writes the result to --out and the traces to --trace-out: both or none.
void write(const TraceResult& result, const TraceFile& traces, Run& run) {
  const Options& options = run.options();
  OutputSet staged;
  if (options.has("trace-out")) staged.add(options.text("trace-out"), dump_json(to_json(traces), -1) + "\n");
  if (options.has("out")) return run.write(staged, to_json(result), [&] { return figures_of(result); });
  staged.commit(run.settings().replace());
}

}  // namespace

void add_trace_options(OptionTable& table) {
  table.group("Traces")
      .value(
          "trace", "N",
          "instead of scoring the texts: continue each prompt with the full cache by at most N tokens, score the "
          "cache on these traces, and continue each prompt with the cache itself. A prompt is a window of the texts, "
          "so --window is its length, or a line of --prompts")
      .from(1, kMostTraceTokens)
      .value("prompts", "FILE", "*.jsonl, one object a line: `prompt`, or with --chat `messages`, of role and content")
      .flag("chat", "write the prompts in the model's chat template: ChatML, Llama 3, Gemma, Mistral or Phi")
      .value("temperature", "NUMBER",
             "draw the tokens from the softmax of logits / NUMBER, with the same random numbers for both caches "
             "(default: the most probable token)")
      .from(1e-3, 100)
      .value("trace-out", "FILE", "also write prompts and traces to FILE")
      .value("trace-from", "FILE", "use the prompts and traces of a FILE of --trace-out instead of making them")
      .check(check_trace_options);
}

bool is_eval_trace(const Options& options) { return options.has("trace") || options.has("trace-from"); }

void run_eval_trace(Run& run) {
  take_trace_outputs(run);
  run.open_model();
  const TaskCache cache = prompted_cache(run.options(), run.model());
  const TraceInput input = read_trace_input(run);
  if (run.options().has("out") && run.is_finished()) return;
  run.load();
  const TraceRun found = continue_all(make_plan(cache, input, run), input, run);
  if (!run.is_root()) return;
  TraceResult result = result_of(cache, input, found, run);
  write(result, trace_file(result, input.prompts, found.outcomes), run);
  result.seconds = trace_times(found);
  run.print(to_json(result), to_text(result));
}

}  // namespace kvs::inline cli
