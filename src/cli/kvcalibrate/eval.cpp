// SPDX-License-Identifier: Apache-2.0
#include "cli/kvcalibrate/eval.h"

#include <filesystem>

#include "calibrate/cache_options.h"
#include "calibrate/config/config.h"
#include "calibrate/method_help.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "eval/cache_quality.h"
#include "eval/evaluation.h"
#include "export/engines/engine.h"
#include "run/progress.h"
#include "run/task_input.h"

namespace kvs::inline cli {
namespace {

constexpr std::size_t kCurveParts = 32;  // of the divergence by position

void check_eval_options(const Options& options) {
  require_partner(options, {"resume"}, {"out"});
  require_partner(options, {"force", "no-lock"}, {"out", "save-config", "trace-out"});
  if (options.has("method") && options.text("method") == "full" && !options.has("set"))
    refuse_options(options, {"reference"}, "--method full");
  if (options.has("task")) return;
  const std::int64_t window = options.integer("window", 2, kMaxTokens);
  if (options.has("stride")) (void)options.integer("stride", 1, window - 1);
  (void)options.integer("decode", 0, window);
}

OptionTable eval_options() {
  OptionTable table(
      "kvcalibrate eval --model PATH (--text PATH | --task NAME | --trace N …) (--config FILE | --method NAME "
      "[--set NAME=VALUE …]) [options]",
      "Measures perplexity, cache bytes, and the divergence from the full cache's predictions. With --task: asks "
      "questions, and measures how many are answered and how probable the answers are. With --trace: measures the "
      "divergence on texts that the model itself generates, and how far the cache's own continuations agree.\n" +
          cache_method_lines() + task_lines(),
      {"kvcalibrate eval --model SmolLM2.gguf --text book.txt --method freqkv --set cache_size=256 gamma=0.5",
       "kvcalibrate eval --model SmolLM2.gguf --text book.txt --window 512 --windows -4: --method full",
       "kvcalibrate eval --model SmolLM2.gguf --text book.txt --method lagkv --set ratio=0.5 --save-config lagkv.json",
       "kvcalibrate eval --model SmolLM2.gguf --text book.txt --config elitekv.json --json",
       "kvcalibrate eval --model SmolLM2.gguf --task passkey --lengths 512,1024 --method lagkv --out passkey.json",
       "kvcalibrate eval --model SmolLM2.gguf --task questions.jsonl --method snapkv --set cache_size=256",
       "kvcalibrate eval --model SmolLM2.gguf --text book.txt --trace 256 --method full --set type=q8_0",
       "kvcalibrate eval --model SmolLM2.gguf --prompts chat.jsonl --chat --trace 256 --config kivi.json"});
  add_cache_options(table);
  add_other_weights(table);
  table
      .value("reference", "full|none", "full: compare with a second pass with the full cache; none: no second pass",
             "full")
      .formerly("against")
      .value("stride", "S",
             "a window begins every S tokens, and its last S tokens are scored (default: windows do not overlap, and "
             "all tokens are scored)")
      .from(1)
      .value("decode", "N", "number of tokens at the end of each document that are processed one at a time", "0")
      .from(0)
      .value("out", "FILE", "also write the JSON result to FILE, without the times")
      .value("save-config", "FILE", "write the method with all its parameters as a config");
  add_trace_options(table);
  add_task_options(table);
  add_model_run_options(table, true);
  table.check(check_eval_options);
  return table;
}

/// Registers --out and --save-config as outputs. Without --out a run keeps no state for --resume.
void take_outputs(Run& run) {
  std::vector<std::filesystem::path> outputs;
  for (const char* name : {"out", "save-config"})
    if (run.options().has(name)) outputs.emplace_back(run.options().text(name));
  run.take_named_outputs(outputs);
}

/// Returns the config of --save-config. No text was used to choose the settings; `quality` holds the measured values.
Json config_of(const CacheChoice& choice, const Run& run, const CacheQuality& found) {
  const Provenance record = run.provenance();
  Json quality{{"text", "evaluated documents"}, {"text_sha256", record.text_sha256},
               {"documents", record.documents}, {"tokens_scored", found.tokens_scored},
               {"ppl", json_of(found.ppl)},     {"nll_mean", found.nll_mean}};
  if (found.loss) {
    quality["ppl_full"] = json_of(found.loss->full.ppl);
    quality["nll_full"] = found.loss->full.nll_mean;
  }
  quality["bytes_per_token"] = found.bytes_per_token;
  return make_config(choice.name(), run.config(), run.model().sha256(), choice.resolved(run.config()), Json::object(),
                     without_text(record), quality, {});
}

CacheChoice chosen_cache(const Options& options, const ModelSource& model) {
  CacheChoice choice = choose_cache(options, model);
  if (options.has("save-config") && choice.loaded)
    throw Error(ErrorCode::kUsage, "--save-config", "cannot be combined with a --config of " + choice.name());
  return choice;
}

EvaluationPlan make_plan(const CacheChoice& choice, const Run& run) {
  const Options& options = run.options();
  const auto tokens = static_cast<std::int64_t>(run.tokens());
  EvaluationPlan plan{.make = cache_maker(choice, run.backend(), run.config(), run.tokens())};
  plan.compare = !choice.is_full() && options.text("reference") == "full";
  if (plan.compare) plan.parts = kCurveParts;
  if (options.has("stride")) plan.last = options.count("stride");
  plan.decode = options.count("decode", 0, tokens);
  return plan;
}

Evaluation score(const EvaluationPlan& plan, Run& run) {
  Progress progress("eval", run.documents().size(), run.quiet());
  return evaluate(run.decoder(), run.documents(), plan, progress.counter(), run.journal(), &run.ranks());
}

/// Prints a note if the method had no effect.
void note_idleness(const CacheChoice& choice, const CacheQuality& found, const Run& run) {
  const bool as_large = found.bytes_ratio >= 1;
  // With another storage type, the size of a cache does not show how many tokens it holds.
  if (choice.method != &kFullMethod && !choice.has_kv_type() && found.compressions == 0 && as_large)
    run.note("documents of " + std::to_string(run.tokens()) + " tokens are all kept: " + choice.name() +
             " has nothing to compress in them");
  if (choice.has_kv_type() && as_large)
    run.note("the storage type leaves the cache as it is: no layer's rows are stored in fewer bytes");
}

EvaluationResult result_of(const CacheChoice& choice, const EvaluationPlan& plan, const Evaluation& evaluation,
                           const Run& run) {
  EvaluationResult result{.method = choice.name(),
                          .quality = cache_quality(evaluation, run.config(), run.tokens()),
                          .parameters = choice.shown_parameters(),
                          .documents = run.documents().size(),
                          .window = run.tokens(),
                          .text_sha256 = run.corpus().text_sha256,
                          .bos = bos_record(run.corpus().bos),
                          .shared_bytes = choice.shown_shared_bytes(),
                          .engines = engine_uses(EngineCache(choice, run.config()))};
  run.describe(result, run.tokens());
  if (plan.last > 0) result.stride = plan.last;
  return result;
}

/// Writes the result to --out and the method to --save-config: both or none.
void write(const CacheChoice& choice, const EvaluationResult& result, Run& run) {
  const Options& options = run.options();
  OutputSet outputs;
  if (options.has("save-config"))
    outputs.add(options.text("save-config"), dump_json(config_of(choice, run, result.quality)) + "\n");
  if (options.has("out")) outputs.add(options.text("out"), dump_json(to_json(result)) + "\n");
  outputs.commit(run.settings().replace());
  run.remove_state();
}

void run_eval(const Options& options) {
  Run run(options);
  if (options.has("task")) return run_eval_task(run);
  if (is_eval_trace(options)) return run_eval_trace(run);
  take_outputs(run);
  run.open_model();
  const CacheChoice choice = chosen_cache(options, run.model());
  run.read_texts([&](std::size_t tokens) { return cache_positions(choice, run.config(), tokens); });
  if (options.has("out") && run.is_finished()) return;
  run.load();
  const EvaluationPlan plan = make_plan(choice, run);
  // The cache's rows are f32 and their buffers double.
  run.print_estimate(
      {.flops = static_cast<double>(run.documents().size()) * evaluation_flops(plan, run.config(), run.tokens()),
       .memory_bytes = session_memory(run.session(), run.tokens()) + 4 * full_cache_bytes(run.config(), run.tokens())});
  const Evaluation evaluation = score(plan, run);
  if (!run.is_root()) return;
  EvaluationResult result = result_of(choice, plan, evaluation, run);
  note_idleness(choice, result.quality, run);
  write(choice, result, run);
  add_times(evaluation, result);
  run.print(to_json(result), to_text(result));
}

}  // namespace

const Subcommand kEvalCommand{"eval", eval_options, run_eval, true};

}  // namespace kvs::inline cli
