#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <optional>

#include "calibrate/config/config.h"
#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvcalibrate/cache_choice.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/eval_task.h"
#include "core/error.h"
#include "eval/evaluation.h"
#include "eval/evaluation_report.h"
#include "io/file.h"
#include "io/journal.h"
#include "io/output_set.h"
#include "model/model_json.h"

namespace kvs {
namespace {

constexpr std::int64_t kLongestWindow = 1 << 24;
constexpr std::size_t kMostResultBytes = std::size_t{1} << 30;

void check_eval_options(const Options& options) {
  require_partner(options, std::array<std::string_view, 1>{"resume"}, std::array<std::string_view, 1>{"out"});
  require_partner(options, std::array<std::string_view, 2>{"force", "no-lock"},
                  std::array<std::string_view, 2>{"out", "save-config"});
  if (options.has("method") && options.text("method") == "full" && !options.has("set"))
    refuse_options(options, std::array<std::string_view, 1>{"against"}, "--method full");
  if (options.has("task")) return check_task_options(options);
  require_partner(options, kTaskOptions, std::array<std::string_view, 1>{"task"});
  const std::int64_t window = options.integer("window", 2, kLongestWindow);
  if (options.has("stride")) (void)options.integer("stride", 1, window - 1);
  (void)options.integer("decode", 0, window);
}

OptionTable eval_options() {
  OptionTable table(
      "kvcalibrate eval --model PATH (--text PATH | --task NAME) (--config FILE | --method NAME [--set NAME=VALUE …]) "
      "[options]",
      "Runs texts with a cache at work: perplexity, cache bytes, and how far predictions are from the full cache's. Or "
      "asks the questions of a task: how many are answered, and how probable the answers are.\n" +
          cache_method_lines() + task_lines(),
      {"kvcalibrate eval --model SmolLM2.gguf --text book.txt --method freqkv --set cache_size=256 gamma=0.5",
       "kvcalibrate eval --model SmolLM2.gguf --text book.txt --window 512 --windows -4: --method full",
       "kvcalibrate eval --model SmolLM2.gguf --text book.txt --method lagkv --set ratio=0.5 --save-config lagkv.json",
       "kvcalibrate eval --model SmolLM2.gguf --text book.txt --config elitekv.json --json",
       "kvcalibrate eval --model SmolLM2.gguf --task passkey --lengths 512,1024 --method lagkv --out passkey.json",
       "kvcalibrate eval --model SmolLM2.gguf --task questions.jsonl --method snapkv --set cache_size=256"});
  add_cache_options(table);
  table.value("against", "full|none", "none: no second pass with the full cache to compare with", "full")
      .value("stride", "S",
             "a window of --window tokens every S tokens, of which the last S are scored (default: windows side by "
             "side, all scored)")
      .from(1)
      .value("decode", "N", "so many tokens at the end of each document go one at a time", "0")
      .from(0)
      .value("out", "FILE", "also write the JSON result here, without the times")
      .value("save-config", "FILE", "write the method with all of its parameters as a config, for --config");
  add_task_options(table);
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  table.check(check_eval_options);
  return table;
}

/// The files that are written beside --out.
std::vector<std::filesystem::path> saved_configs(const Options& options) {
  if (!options.has("save-config")) return {};
  return {options.text("save-config")};
}

/// Checks and locks the outputs that the options name before any work.
std::optional<OutputLock> take_outputs(const Options& options, const RunOptions& run) {
  std::vector<std::filesystem::path> outputs;
  for (const char* name : {"out", "save-config"})
    if (options.has(name)) outputs.emplace_back(options.text(name));
  if (outputs.empty()) return std::nullopt;
  const auto others = std::span(outputs).subspan(1);
  check_outputs(outputs.front(), others, options, run);
  return OutputLock(outputs.front(), run.lock, others);
}

/// The config of --save-config. No text was read to choose its settings; its `quality` is what `result` measured.
Json config_of(const CacheChoice& choice, const ModelSession& session, const Provenance& record, const Json& result) {
  Json quality{{"text", "evaluated documents"}, {"text_sha256", record.text_sha256},
               {"documents", record.documents}, {"tokens_scored", result.at("tokens_scored")},
               {"ppl", result.at("ppl")},       {"nll_mean", result.at("nll_mean")}};
  if (result.contains("full")) {
    quality["ppl_full"] = result.at("full").at("ppl");
    quality["nll_full"] = result.at("full").at("nll_mean");
  }
  quality["bytes_per_token"] = result.at("bytes_per_token");
  return make_config(choice.name(), session.config(), session.source->sha256(), choice.resolved(session.config()),
                     Json::object(), without_text(record), quality, {});
}

}  // namespace

void run_eval(Arguments arguments) {
  const auto options = eval_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  if (options->has("task")) {
    if (!run.ranks->alone())
      throw Error(ErrorCode::kUnsupported, "--task", "found several ranks, expected one process: they do not share it");
    return run_eval_task(*options, run);
  }
  const std::optional<OutputLock> lock = take_outputs(*options, run);
  auto source = open_model(*options);
  const CacheChoice choice = choose_cache(*options, *source);
  if (options->has("save-config") && choice.loaded)
    throw Error(ErrorCode::kUsage, "--save-config", "cannot be combined with a --config of " + choice.name());
  const Corpus corpus = load_corpus(
      *options, run, *source, [&](std::size_t tokens) { return cache_positions(choice, source->config(), tokens); });
  const auto documents = tokens_of(corpus);
  const std::size_t tokens = documents.front().size();
  const auto decode = static_cast<std::size_t>(options->integer("decode", 0, static_cast<std::int64_t>(tokens)));
  const Json identity = run_identity(*options, *source, corpus);
  if (options->has("out")) {
    const std::string out = options->text("out");
    if (is_finished(
            out, out, run, [&](const Json& json) { return is_of_run(json, "", *options, identity); },
            [&](const Json&) { return saved_configs(*options); }))
      return print_result(run, parse_json(read_text_file(out, kMostResultBytes), out), out + ": finished before\n");
    check_journal(out, run);
  }
  ModelSession session = load_model(std::move(source), *options, run);
  const ModelConfig& config = session.config();
  std::optional<Journal> journal;
  require_agreement(run, identity, *session.backend);
  if (options->has("out") && run.leads()) journal.emplace(open_journal(options->text("out"), identity, run));
  EvaluationPlan plan{.make = cache_maker(choice, session, tokens)};
  plan.compare = !choice.is_full() && options->text("against") == "full";
  if (options->has("stride")) plan.last = static_cast<std::size_t>(options->integer("stride", 1, kLongestWindow));
  plan.decode = decode;
  announce({.flops = (plan.compare ? 2 : 1) * static_cast<double>(documents.size()) *
                     forward_flops(config, static_cast<double>(tokens)),
            // The cache's rows are f32 and their buffers double.
            .memory_bytes = session_memory(session, tokens) + 4 * full_cache_bytes(config, tokens)},
           *session.backend, run);

  Progress progress("eval", static_cast<double>(documents.size()), run.quiet);
  const Evaluation evaluation = evaluate(
      *session.decoder, documents, plan, [&](std::size_t done) { progress.update(static_cast<double>(done)); },
      journal ? &*journal : nullptr, run.ranks);
  if (!run.leads()) return;
  const Provenance record = provenance(*options, run, corpus);
  Json result{{"method", choice.name()}};
  result.update(evaluation_json(evaluation, config, tokens));
  const Json given = choice.given();
  if (!choice.loaded || !given.empty()) result["parameters"] = given;
  // With a storage of its own a cache's size says nothing of its tokens.
  if (choice.method != &kFullMethod && !choice.has_store() && result.at("compressions") == 0 &&
      result.at("bytes_ratio") >= 1.0)
    remark("note: documents of " + std::to_string(tokens) + " tokens are all kept: " + choice.name() +
               " has nothing to compress in them",
           run.quiet);
  if (choice.has_store() && result.at("bytes_ratio") >= 1.0)
    remark("note: the storage type leaves the cache as it is: no layer's rows are stored in fewer bytes", run.quiet);
  result.update(Json{{"documents", documents.size()},
                     {"window", tokens},
                     {"dtype", name_of(session.backend->compute_type())},
                     {"model", model_json(config, session.source->sha256(), tokens)},
                     {"text_sha256", record.text_sha256},
                     {"bos", bos_json(corpus.bos)},
                     {"command", record.command},
                     {"tool_version", record.tool_version}});
  if (plan.last > 0) result["stride"] = plan.last;
  if (choice.shared_bytes() > 0) result["shared_bytes"] = choice.shared_bytes();
  result.update(record.inputs);
  OutputSet outputs;
  if (options->has("save-config"))
    outputs.add(options->text("save-config"), dump_json(config_of(choice, session, record, result)) + "\n");
  if (options->has("out")) outputs.add(options->text("out"), dump_json(result) + "\n");
  outputs.commit(run.replace());
  if (journal) journal->remove();
  add_times(evaluation, result);
  print_result(run, result, choice.name() + ": " + evaluation_summary(result));
}

}  // namespace kvs
